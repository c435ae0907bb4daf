import type { NewFile } from '../../sql/rag/collections.ts'
import { extensionOf, formatOf } from '../../tasks/rag/formats.ts'
import { hashTerm, tokenize } from '../../tasks/rag/words.ts'

export const toBytes = (numbers: Float32Array | Uint32Array): Uint8Array =>
  new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)

/** A viewer who sees every collection. */
export const ALL_VIEWER = { ownerId: null, seesAll: true }

/** Returns a file as an indexing run stores it. Its whole text is one chunk. */
export const createFile = (source: string, content: string): NewFile => ({
  source,
  document: null,
  sha256: new Uint8Array(32),
  byteSize: content.length,
  format: formatOf(extensionOf(source)),
  analysis: 1,
  chunks: [
    {
      content,
      startOffset: 0,
      endOffset: content.length,
      startLine: 1,
      endLine: 1,
      page: null,
      heading: null,
      terms: toBytes(Uint32Array.from(tokenize(content), hashTerm)),
    },
  ],
})
