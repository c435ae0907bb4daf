import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fail } from '../../../sql/errors.ts'
import type { BlobStore } from './store.ts'

const READ_BYTES = 256 * 1024
// Matches UUIDs in PostgreSQL's format. Other keys must not become part of a path.
const KEY_PATTERN = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * Stores bytes as files in a folder that all processes share. A file gets its final name once it is complete and synced
 * to disk. To keep folders small, files are in subfolders named after the first digits of their keys.
 */
export function createFileStore(folder: string): BlobStore {
  const root = resolve(folder)
  const pathOf = (key: string): string => {
    if (!KEY_PATTERN.test(key)) throw new Error('The blob key is not a UUID')
    return join(root, key.slice(0, 2), key.slice(2, 4), key)
  }
  return {
    write: async ({ key }, chunks) => {
      const path = pathOf(key)
      await createFolder(dirname(path))
      await writeDurably(partialPathOf(path), chunks)
      await rename(partialPathOf(path), path)
      await syncFolder(dirname(path))
    },
    read: ({ key }, from, length) => readFile(pathOf(key), from, length),
    exists: async ({ key }, byteSize) => (await stat(pathOf(key)).catch(nullIfMissing))?.size === byteSize,
    remove: async ({ key }) => {
      await rm(partialPathOf(pathOf(key)), { force: true })
      await rm(pathOf(key), { force: true })
    },
    close: () => {},
  }
}

const partialPathOf = (path: string): string => `${path}.part`

async function writeDurably(path: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  // Overwrites the partial file of a killed restore.
  const file = await open(path, 'w', 0o600)
  try {
    for await (const chunk of chunks) await file.appendFile(chunk)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function* readFile(path: string, from: number, length: number): AsyncGenerator<Uint8Array> {
  const file = await open(path, 'r').catch(nullIfMissing)
  if (file === null) throw fail('document.bytes_missing')
  try {
    if ((await file.stat()).size < from + length) throw fail('document.bytes_missing')
    yield* readPieces(file, from, length)
  } finally {
    await file.close()
  }
}

async function* readPieces(file: FileHandle, from: number, length: number): AsyncGenerator<Uint8Array> {
  // Reuses one buffer. With a new buffer per read, 100 MiB would wait for the garbage collector.
  const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, length))
  for (let at = from, end = from + length; at < end; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, end - at), at)
    if (bytesRead === 0) throw fail('document.bytes_missing')
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

/** Creates a folder and its parents, and syncs them to disk. */
async function createFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  for (let made = path; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made))
}

/** Syncs the entries of a folder to disk; otherwise a power failure may lose the name of a file. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function nullIfMissing(error: unknown): null {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT' || code === 'ENOTDIR') return null
  throw error
}
