import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fail } from '../../../sql/errors.ts'
import type { BlobStore } from './store.ts'

const READ_BYTES = 256 * 1024
// Only a UUID as PostgreSQL writes it may become part of a path.
const KEY = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * Bytes in files of a folder that all processes share. A file appears under its name only once it is complete and on
 * disk; subfolders by the first digits of the names keep every folder small.
 */
export function createFileStore(folder: string): BlobStore {
  const root = resolve(folder)
  const pathOf = (key: string): string => {
    if (!KEY.test(key)) throw new Error('The key of the bytes is not a UUID')
    return join(root, key.slice(0, 2), key.slice(2, 4), key)
  }
  return {
    write: async ({ key }, chunks) => {
      const path = pathOf(key)
      await makeFolder(dirname(path))
      await writeThrough(partOf(path), chunks)
      await rename(partOf(path), path)
      await syncFolder(dirname(path))
    },
    read: ({ key }, from, length) => readFile(pathOf(key), from, length),
    exists: async ({ key }, byteSize) => (await stat(pathOf(key)).catch(nullWhenMissing))?.size === byteSize,
    remove: async ({ key }) => {
      await rm(partOf(pathOf(key)), { force: true })
      await rm(pathOf(key), { force: true })
    },
    close: () => {},
  }
}

const partOf = (path: string): string => `${path}.part`

async function writeThrough(path: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  // There may be what a restore that was killed has left.
  const file = await open(path, 'w', 0o600)
  try {
    for await (const chunk of chunks) await file.appendFile(chunk)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function* readFile(path: string, from: number, length: number): AsyncGenerator<Uint8Array> {
  const file = await open(path, 'r').catch(nullWhenMissing)
  if (file === null) throw fail('document.bytes_missing')
  try {
    if ((await file.stat()).size < from + length) throw fail('document.bytes_missing')
    yield* pieces(file, from, length)
  } finally {
    await file.close()
  }
}

async function* pieces(file: FileHandle, from: number, length: number): AsyncGenerator<Uint8Array> {
  // One buffer for all pieces: in separate ones, 100 MiB would wait for the garbage collector.
  const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, length))
  for (let at = from, end = from + length; at < end; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, end - at), at)
    if (bytesRead === 0) throw fail('document.bytes_missing')
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

/** Makes a folder and its parents durably. */
async function makeFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  for (let made = path; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made))
}

/** Syncs the entries of a folder to disk; without it, a power cut may lose a name and leave its file. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function nullWhenMissing(error: unknown): null {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT' || code === 'ENOTDIR') return null
  throw error
}
