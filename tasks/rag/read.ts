import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, realpath, stat } from 'node:fs/promises'
import { decodeText as decodeBytes } from '../formats/decode.ts'
import { findDeclaredEncoding, isText } from '../formats/encodings.ts'
import type { Format } from './chunks.ts'
import { describeFileError, type FoundFile } from './walk.ts'

/** A file's bytes, or the reason for skipping it. */
export type ReadFileResult = { readonly bytes: Buffer; readonly sha256: Buffer } | { readonly reason: string }

// A larger text contains data, and would yield thousands of chunks.
const MAX_TEXT_BYTES = 8 * 1024 * 1024
const MAX_PDF_BYTES = 100 * 1024 * 1024

/**
 * Reads a file that the walk found. Skips it if a link, device or pipe has replaced it, or if a link has replaced one
 * of its folders.
 */
export async function readFoundFile({ path }: FoundFile, format: Format): Promise<ReadFileResult> {
  let file: FileHandle | null = null
  try {
    // Without O_NONBLOCK, opening a pipe waits for a writer.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const opened = await file.stat()
    if (!opened.isFile()) return { reason: 'not a file' }
    const [real, named] = [await realpath(path), await stat(path)]
    if (real !== path || named.ino !== opened.ino || named.dev !== opened.dev)
      return { reason: 'replaced during the run' }
    const max = format === 'pdf' ? MAX_PDF_BYTES : MAX_TEXT_BYTES
    if (opened.size > max) return { reason: `larger than ${max / 1024 / 1024} MiB` }
    const bytes = await readAtMost(file, opened.size)
    return { bytes, sha256: createHash('sha256').update(bytes).digest() }
  } catch (error) {
    return { reason: describeFileError(error) }
  } finally {
    await file?.close()
  }
}

/** Reads at most `size` bytes, even if the file has grown since. */
async function readAtMost(file: FileHandle, size: number): Promise<Buffer> {
  const bytes = Buffer.alloc(size)
  let at = 0
  for (let read = -1; read !== 0 && at < size; at += read)
    ({ bytesRead: read } = await file.read(bytes, at, size - at, at))
  return bytes.subarray(0, at)
}

/** Decodes a text in any encoding that its bytes tell or an HTML page declares. Null if the bytes are not text. */
export function decodeText(bytes: Buffer, format: Format = 'text'): string | null {
  if (!isText(bytes)) return null
  return (
    decodeBytes(bytes, {
      declared: format === 'html' ? findDeclaredEncoding(bytes) : null,
    })?.text.toWellFormed() ?? null
  )
}
