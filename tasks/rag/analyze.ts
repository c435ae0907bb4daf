import type { NewChunk } from '../../sql/rag.ts'
import { type Chunk, chunksOf, type Format } from './chunks.ts'
import { textOf } from './read.ts'
import { hashOf, termsOf } from './words.ts'

/** Increased whenever the same bytes would give other chunks or terms: files of an older version are analyzed again. */
export const ANALYSIS = 4

/** The chunks of a file, or why there are none. */
export type Analyzed = { readonly chunks: readonly NewChunk[] } | { readonly reason: string }

/** How to analyze a file. */
export interface Analyzable {
  readonly format: Format
  readonly fileName: string
  /** The bytes are a JSON array of the texts of pages, which have been read separately. */
  readonly arePages?: boolean
}

// A file with more is data, and would crowd out all others.
const MAX_CHUNKS = 20_000
const MAX_LINES = 500_000
/** How long the pages of a PDF or a document may be together: about 10,000 pages of a book. */
export const MAX_PAGES_CHARACTERS = 20_000_000

/** Cuts a file's bytes into chunks with their terms. Parses untrusted content, so it only runs in a child process. */
export function analyze(bytes: Buffer, { format, fileName, arePages = false }: Analyzable): Analyzed {
  const { text, starts } = arePages
    ? joined(JSON.parse(bytes.toString()))
    : { text: textOf(bytes, format), starts: [] }
  if (text === null) return { reason: 'not text' }
  if (hasMoreLines(text, MAX_LINES)) return { reason: `more than ${MAX_LINES} lines` }
  const chunks = chunksOf(text, format, starts)
  if (chunks.length > MAX_CHUNKS) return { reason: `more than ${MAX_CHUNKS} chunks` }
  return { chunks: chunks.map((chunk) => rowOf(chunk, format === 'text' ? '' : fileName)) }
}

function hasMoreLines(text: string, max: number): boolean {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) if (++count > max) return true
  return false
}

function joined(pages: readonly string[]): { readonly text: string; readonly starts: readonly number[] } {
  let text = ''
  const starts = pages.map((page) => {
    const start = text.length
    if (page !== '') text += `${page}\n\n`
    return start
  })
  return { text, starts }
}

function rowOf(chunk: Chunk, fileName: string): NewChunk {
  // A chunk is also found by the names of what it is part of.
  const about = `${fileName.replace(/\.[^.]*$/, '')} ${chunk.heading ?? ''}\n`
  const terms = Uint32Array.from(termsOf(about + chunk.content), hashOf)
  return { ...chunk, terms: new Uint8Array(terms.buffer) }
}
