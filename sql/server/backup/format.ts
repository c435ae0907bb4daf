import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createGunzip } from 'node:zlib'

/**
 * Format of a backup file: a line that identifies it, then consecutive gzip members that together hold frames. A frame
 * is a letter, four bytes of length, and the payload. `H` opens a section with its JSON, `D` holds bytes of it, and `E`
 * ends it with their number and SHA-256. `Z` ends the file with the number of sections. The numbers and digests detect
 * truncation and corruption.
 */
export const MAGIC = 'millrace-backup 2\n'

export interface Section<H> {
  readonly header: H
  readonly data: AsyncIterable<Uint8Array>
}

/** Thrown if a file is not a backup, or is damaged or incomplete. */
export class BackupError extends Error {}

const MAX_FRAME_BYTES = 16 * 1024 * 1024

/** Yields the frames of one section. */
export async function* encodeSection<H>({ header, data }: Section<H>): AsyncGenerator<Uint8Array> {
  yield* frame('H', Buffer.from(JSON.stringify(header)))
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of data) {
    hash.update(chunk)
    bytes += chunk.length
    yield* frame('D', chunk)
  }
  yield* frame('E', Buffer.from(JSON.stringify({ bytes, sha256: hash.digest('hex') })))
}

/** Yields the frame that ends the file. */
export const encodeFinalFrame = (sections: number): Generator<Uint8Array> =>
  frame('Z', Buffer.from(JSON.stringify({ sections })))

function* frame(letter: string, payload: Uint8Array): Generator<Uint8Array> {
  const head = Buffer.alloc(5)
  head.write(letter, 0, 'latin1')
  head.writeUInt32BE(payload.length, 1)
  yield head
  yield payload
}

/**
 * Yields the sections of a file in order. The caller must read the data of each before the next. The headers are not
 * checked against `H`.
 * @throws BackupError if the file is not a backup, or is damaged or incomplete.
 */
export async function* readSections<H>(file: string): AsyncGenerator<Section<H>> {
  const reader = new FrameReader(await openStream(file))
  let count = 0
  for (;;) {
    const { letter, payload } = await reader.next()
    if (letter === 'Z') {
      if (parseJson<{ sections: number }>(payload).sections !== count) throw createDamagedError()
      return
    }
    if (letter !== 'H') throw createDamagedError()
    count++
    yield { header: parseJson<H>(payload), data: readData(reader) }
  }
}

async function* readData(reader: FrameReader): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256')
  let bytes = 0
  for (;;) {
    const { letter, payload } = await reader.next()
    if (letter === 'D') {
      hash.update(payload)
      bytes += payload.length
      yield payload
      continue
    }
    if (letter !== 'E') throw createDamagedError()
    const end = parseJson<{ bytes: number; sha256: string }>(payload)
    if (end.bytes !== bytes || end.sha256 !== hash.digest('hex')) throw createDamagedError()
    return
  }
}

async function openStream(file: string): Promise<AsyncIterator<Buffer>> {
  const handle = await open(file, 'r')
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAGIC.length), 0, MAGIC.length, 0)
    if (bytesRead < MAGIC.length || buffer.toString('latin1') !== MAGIC)
      throw new BackupError('The file is not a backup of this service')
  } finally {
    await handle.close()
  }
  const input = createReadStream(file, { start: MAGIC.length })
  const output = createGunzip()
  input.on('error', (error) => output.destroy(error))
  return input.pipe(output)[Symbol.asyncIterator]()
}

class FrameReader {
  private readonly chunks: AsyncIterator<Buffer>
  private buffered: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterator<Buffer>) {
    this.chunks = chunks
  }

  async next(): Promise<{ letter: string; payload: Buffer }> {
    const head = await this.readBytes(5)
    const length = head.readUInt32BE(1)
    if (length > MAX_FRAME_BYTES) throw createDamagedError()
    return { letter: head.toString('latin1', 0, 1), payload: await this.readBytes(length) }
  }

  private async readBytes(length: number): Promise<Buffer> {
    const parts: Buffer[] = []
    let missing = length
    while (missing > 0) {
      if (this.buffered.length === 0) this.buffered = await this.readChunk()
      const part = this.buffered.subarray(0, missing)
      this.buffered = this.buffered.subarray(part.length)
      missing -= part.length
      parts.push(part)
    }
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
  }

  private async readChunk(): Promise<Buffer> {
    const { value, done } = await this.chunks.next().catch(() => {
      throw createDamagedError()
    })
    if (done) throw createDamagedError()
    return value
  }
}

function parseJson<T>(payload: Buffer): T {
  try {
    const value: unknown = JSON.parse(payload.toString())
    if (typeof value === 'object' && value !== null) return value as T
  } catch {}
  throw createDamagedError()
}

function createDamagedError(): BackupError {
  return new BackupError('The backup is damaged or incomplete')
}
