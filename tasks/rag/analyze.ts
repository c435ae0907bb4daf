import type { NewChunk } from '../../sql/rag.ts'
import type { PageReader } from '../context.ts'
import { type Chunk, chunksOf, type Format } from './chunks.ts'
import { textOf } from './read.ts'
import { hashOf, termsOf } from './words.ts'

/** Grows whenever the same bytes would become other chunks or terms: files of an older one are made again. */
export const ANALYSIS = 1

/** What a file's bytes become, or why they become nothing. */
export type Analyzed = { readonly chunks: readonly NewChunk[] } | { readonly reason: string }

/** Reads a PDF's pages. */
export type OpenPdf = (bytes: Uint8Array) => Promise<PageReader>

/** Cuts a file's bytes into chunks with their terms. */
export async function analyze(
  bytes: Buffer,
  format: Format,
  fileName: string,
  openPdf: OpenPdf,
): Promise<Analyzed> {
  if (format === 'pdf') {
    const read = await pdfText(bytes, openPdf)
    if ('reason' in read) return read
    return { chunks: chunksOf(read.text, format, read.pageStarts).map((chunk) => rowOf(chunk, fileName)) }
  }
  const text = textOf(bytes)
  if (text === null) return { reason: 'not a text' }
  return { chunks: chunksOf(text, format).map((chunk) => rowOf(chunk, format === 'text' ? '' : fileName)) }
}

function rowOf(chunk: Chunk, fileName: string): NewChunk {
  // A chunk is also about what it is part of.
  const about = `${fileName.replace(/\.[^.]*$/, '')} ${chunk.heading ?? ''}\n`
  const terms = Uint32Array.from(termsOf(about + chunk.content), hashOf)
  return { ...chunk, terms: new Uint8Array(terms.buffer) }
}

type PdfText = { readonly text: string; readonly pageStarts: readonly number[] } | { readonly reason: string }

async function pdfText(bytes: Buffer, openPdf: OpenPdf): Promise<PdfText> {
  // The reader takes the bytes over, and those of a small Buffer are shared.
  const reader = await openPdf(Uint8Array.from(bytes))
  try {
    let text = ''
    let reason: string | null = null
    const pageStarts: number[] = []
    for (let number = 1; number <= reader.pageCount; number++) {
      const page = await reader.read(number)
      pageStarts.push(text.length)
      if (page.status === 'read') text += `${page.text.trim()}\n\n`
      else reason ??= page.detail
    }
    return text.trim() === '' ? { reason: reason ?? 'a PDF without text' } : { text, pageStarts }
  } finally {
    await reader.close()
  }
}
