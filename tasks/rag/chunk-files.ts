import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { readChunkFiles } from '../../sql/rag/reads.ts'
import type { Reader } from '../../sql/reads/reader.ts'
import type { Versioned } from './version-cache.ts'

/** The files of several chunks in one version of a collection. */
export interface ChunkFiles extends Versioned {
  /** The number of all files that have chunks. */
  readonly fileCount: number
  /** The file of each chunk, as an index of `lengths`; 0 if the file has no other chunk. */
  readonly fileOf: Uint32Array
  /** The number of terms in each file, from index 1. */
  readonly lengths: Uint32Array
}

// Counts a collection without such files, too.
const OBJECT_BYTES = 1000

const Row = z.object({ version: z.int(), file_count: z.int(), lengths: z.string(), chunks: z.string() })

/** Loads the files of the chunks of a collection. @throws fail('rag.missing'). */
export async function loadChunkFiles(reader: Reader, id: number): Promise<ChunkFiles> {
  const text = await reader.text(readChunkFiles, [id])
  if (text === null) throw fail('rag.missing')
  const { version, file_count: fileCount, ...row } = Row.parse(JSON.parse(text))
  const [lengths, pairs] = [decodeIntegers(row.lengths), decodeIntegers(row.chunks)]
  let bound = 0
  for (let at = 0; at < pairs.length; at += 2) bound = Math.max(bound, pairs[at]! + 1)
  const fileOf = new Uint32Array(bound)
  for (let at = 0; at < pairs.length; at += 2) fileOf[pairs[at]!] = pairs[at + 1]!
  const bytes = OBJECT_BYTES + fileOf.byteLength + lengths.byteLength
  return { version, fileCount, fileOf, lengths, bytes }
}

/** Decodes big-endian integers of 4 bytes in base64. */
export function decodeIntegers(base64: string): Uint32Array {
  // A copy starts at offset 0 of its own memory, as an array of integers must.
  const { buffer } = Uint8Array.from(Buffer.from(base64, 'base64'))
  Buffer.from(buffer).swap32()
  return new Uint32Array(buffer)
}
