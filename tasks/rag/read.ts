import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, realpath, stat } from 'node:fs/promises'
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

// Text has no control characters except white space and ESC, which coloured logs use.
const CONTROL_CHARACTER = /(?!\s)\p{Cc}/u

// Matches the encoding that an HTML or XML page declares
// (https://html.spec.whatwg.org/#prescan-a-byte-stream-to-determine-its-encoding).
const DECLARED_ENCODING =
  /<(?:meta\b[^>]*?\bcharset|\?xml\b[^>]*?\bencoding)\s*=\s*["']?\s*(?!utf-16|unicode|ucs-2)([\w-]+)/i
const PRESCAN_BYTES = 1024

/**
 * Decodes bytes, as UTF-16 if they begin with a byte order mark. Otherwise tries UTF-8, then the encoding that an HTML
 * page declares, then Windows-1252. Null if the bytes are not text.
 */
export function decodeText(bytes: Buffer, format: Format = 'text'): string | null {
  const little = bytes[0] === 0xff && bytes[1] === 0xfe
  const big = bytes[0] === 0xfe && bytes[1] === 0xff
  const declared =
    format === 'html' ? DECLARED_ENCODING.exec(bytes.toString('latin1', 0, PRESCAN_BYTES))?.[1] : undefined
  const text = little || big ? decode(bytes, little ? 'utf-16le' : 'utf-16be') : decodeBytes(bytes, declared)
  return text === null ||
    CONTROL_CHARACTER.test(text.slice(0, 8192).replaceAll('\x1b', '')) ||
    text.includes('\0')
    ? null
    : text.toWellFormed()
}

function decodeBytes(bytes: Buffer, declared = 'windows-1252'): string | null {
  return decode(bytes, 'utf-8') ?? decode(bytes, declared) ?? decode(bytes, 'windows-1252')
}

function decode(bytes: Buffer, encoding: string): string | null {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}
