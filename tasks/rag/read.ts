import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, realpath, stat } from 'node:fs/promises'
import type { Format } from './chunks.ts'
import { type Found, reasonOf } from './walk.ts'

/** A file's bytes, or why they were not read. */
export type ReadFile = { readonly bytes: Buffer; readonly sha256: Buffer } | { readonly reason: string }

// A larger text is data: one file would make thousands of chunks.
const MAX_TEXT_BYTES = 8 * 1024 * 1024
const MAX_PDF_BYTES = 100 * 1024 * 1024

/**
 * Reads a file that was found, if it still is one: not a link, device or pipe that has replaced it, and not through a
 * folder that has become a link.
 */
export async function readFound({ path }: Found, format: Format): Promise<ReadFile> {
  let file: FileHandle | null = null
  try {
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const opened = await file.stat()
    if (!opened.isFile()) return { reason: 'not a file' }
    const [real, named] = [await realpath(path), await stat(path)]
    if (real !== path || named.ino !== opened.ino || named.dev !== opened.dev)
      return { reason: 'replaced meanwhile' }
    const max = format === 'pdf' ? MAX_PDF_BYTES : MAX_TEXT_BYTES
    if (opened.size > max) return { reason: `larger than ${max / 1024 / 1024} MiB` }
    const bytes = await readAtMost(file, opened.size)
    return { bytes, sha256: createHash('sha256').update(bytes).digest() }
  } catch (error) {
    return { reason: reasonOf(error) }
  } finally {
    await file?.close()
  }
}

/** Reads a file up to its size when it was opened, even if it grows meanwhile. */
async function readAtMost(file: FileHandle, size: number): Promise<Buffer> {
  const bytes = Buffer.alloc(size)
  let at = 0
  for (let read = -1; read !== 0 && at < size; at += read)
    ({ bytesRead: read } = await file.read(bytes, at, size - at, at))
  return bytes.subarray(0, at)
}

// Text has no control characters except white space, and the escape that colours logs.
const CONTROL = /(?!\s)\p{Cc}/u

// Where a page says what it is written in (https://html.spec.whatwg.org/#prescan-a-byte-stream-to-determine-its-encoding).
const DECLARED =
  /<(?:meta\b[^>]*?\bcharset|\?xml\b[^>]*?\bencoding)\s*=\s*["']?\s*(?!utf-16|unicode|ucs-2)([\w-]+)/i
const DECLARED_WITHIN = 1024

/**
 * The text of bytes: UTF-8, UTF-16 with a byte order mark, what a page says, or Windows-1252; null when they are not
 * text.
 */
export function textOf(bytes: Buffer, format: Format = 'text'): string | null {
  const little = bytes[0] === 0xff && bytes[1] === 0xfe
  const big = bytes[0] === 0xfe && bytes[1] === 0xff
  const declared =
    format === 'html' ? DECLARED.exec(bytes.toString('latin1', 0, DECLARED_WITHIN))?.[1] : undefined
  const text = little || big ? decoded(bytes, little ? 'utf-16le' : 'utf-16be') : ofEightBits(bytes, declared)
  return text === null || CONTROL.test(text.slice(0, 8192).replaceAll('\x1b', '')) || text.includes('\0')
    ? null
    : text.toWellFormed()
}

function ofEightBits(bytes: Buffer, declared = 'windows-1252'): string | null {
  return decoded(bytes, 'utf-8') ?? decoded(bytes, declared) ?? decoded(bytes, 'windows-1252')
}

function decoded(bytes: Buffer, encoding: string): string | null {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}
