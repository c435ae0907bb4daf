import type { Database } from '../../sql/db.ts'
import {
  addFiles,
  type BuildSwap,
  type NewFile,
  openFreeNumbers,
  swapBuild,
} from '../../sql/rag/collections.ts'
import { extensionOf, formatOf } from '../../tasks/rag/formats.ts'

export const toBytes = (numbers: Float32Array | Uint32Array): Uint8Array =>
  new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)

/** A viewer who sees every collection. */
export const ALL_VIEWER = { ownerId: null, seesAll: true }

/** Returns a file as an indexing run stores it. Its whole text is one chunk. */
export const createFile = (source: string, content: string): NewFile => ({
  source,
  document: null,
  metadata: {},
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
      context: '',
    },
  ],
})

/** Adds files to a build as a run does. */
export async function addToBuild(
  db: Database,
  collection: number,
  build: string,
  files: readonly NewFile[],
): Promise<void> {
  await addFiles(db, collection, build, files, await openFreeNumbers(db, collection))
}

/** Swaps a build in as a run does; returns the new counts. */
export const swapIn = (db: Database, swap: BuildSwap): ReturnType<typeof swapBuild> =>
  db.transaction((tx) => swapBuild(tx, swap))
