/** Splits files into chunks for retrieval inside a child, one file at a time. */
import type { NewChunk } from '../../sql/rag/collections.ts'
import { analyze } from '../../tasks/rag/analyze.ts'
import type { Work } from './work.ts'

// Number of chunks per message: one to three megabytes.
const CHUNKS_PER_ANSWER = 1000

let chunks: readonly NewChunk[] = []

export function open(bytes: Buffer, file: Work['chunks.open']['request']): Work['chunks.open']['answer'] {
  const analyzed = analyze(bytes, file)
  if ('reason' in analyzed) return analyzed
  chunks = analyzed.chunks
  return { count: chunks.length }
}

export const read = (from: number): Work['chunks.read']['answer'] =>
  chunks.slice(from, from + CHUNKS_PER_ANSWER)

export function close(): void {
  chunks = []
}
