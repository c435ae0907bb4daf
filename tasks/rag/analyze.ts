import type { NewChunk } from '../../sql/rag/collections.ts'
import { type Format, type PageStart, splitIntoChunks } from './chunks.ts'
import { decodeText } from './read.ts'

/**
 * Increase the version whenever the analysis of the same bytes changes. The next run then reanalyzes files of older
 * versions.
 */
export const ANALYSIS_VERSION = 7

/** The chunks of a file, or the reason for having none. */
export type AnalysisResult = { readonly chunks: readonly NewChunk[] } | { readonly reason: string }

/** The text of a page. */
export interface AnalyzedPage {
  readonly text: string
  readonly isMarkdown: boolean
}

/** Options of the analysis of a file. */
export interface AnalysisOptions {
  readonly format: Format
  readonly fileName: string
  /** True if the bytes are a JSON array of `AnalyzedPage`. */
  readonly isPageList?: boolean
}

// A file with more chunks contains data, and its chunks would crowd out those of other files.
const MAX_CHUNKS = 20_000
const MAX_LINES = 500_000
/** Maximum number of characters in all pages of a PDF or document: about 10,000 pages of a book. */
export const MAX_PAGES_CHARACTERS = 20_000_000

/** Cuts a file into chunks. Run it only in a child process: it parses untrusted content. */
export function analyze(
  bytes: Buffer,
  { format, fileName, isPageList = false }: AnalysisOptions,
): AnalysisResult {
  const { text, starts } = isPageList
    ? joinPages(JSON.parse(bytes.toString()))
    : { text: decodeText(bytes, format), starts: [] }
  if (text === null) return { reason: 'not text' }
  if (hasMoreLines(text, MAX_LINES)) return { reason: `more than ${MAX_LINES} lines` }
  const chunks = splitIntoChunks(text, format, starts)
  if (chunks.length > MAX_CHUNKS) return { reason: `more than ${MAX_CHUNKS} chunks` }
  // Queries also match a chunk by its file name.
  const context = format === 'text' ? '' : fileName.replace(/\.[^.]*$/, '')
  return { chunks: chunks.map((chunk) => ({ ...chunk, context })) }
}

function hasMoreLines(text: string, max: number): boolean {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) if (++count > max) return true
  return false
}

function joinPages(pages: readonly AnalyzedPage[]): {
  readonly text: string
  readonly starts: readonly PageStart[]
} {
  let text = ''
  const starts = pages.map(({ text: page, isMarkdown }) => {
    const start = text.length
    if (page !== '') text += `${page}\n\n`
    return { start, isMarkdown }
  })
  return { text, starts }
}
