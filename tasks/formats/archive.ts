import { Readable } from 'node:stream'
import { ZipFile } from 'yazl'

/** A file to add to an archive. */
export interface ArchiveFile {
  readonly name: string
  readonly content: string | AsyncIterable<Uint8Array>
  readonly modifiedAt: Date
  /** True if the content is already compressed; the archive then stores it unchanged. */
  readonly isCompressed?: boolean
}

/**
 * Creates a zip archive from a stream of files, with backpressure. Requests each file only after it has read the
 * previous one, so memory holds part of one file and 2 kB per packed file. No other module imports `yazl`.
 *
 * @throws errors of `files` and of their contents.
 */
export async function* createArchive(files: AsyncIterable<ArchiveFile>): AsyncGenerator<Uint8Array> {
  const zip = new ZipFile()
  const output = zip.outputStream as Readable
  let current: Readable | null = null
  const pack = async (): Promise<void> => {
    for await (const { name, content, modifiedAt, isCompressed = false } of files) {
      if (output.destroyed) return
      const source = toReadable(content)
      current = source
      const read = new Promise((resolve) => source.once('close', resolve))
      source.once('error', (error) => output.destroy(error))
      const options = { mtime: modifiedAt, mode: 0o100644, compress: !isCompressed }
      zip.addReadStream(source, name, options)
      await read
      current = null
    }
    zip.end()
  }
  const packing = pack().catch((error) => void output.destroy(error))
  try {
    for await (const chunk of output) yield chunk as Uint8Array
  } finally {
    // If the reader stops early, release the file that is being packed.
    output.destroy()
    ;(current as Readable | null)?.destroy()
    await packing
  }
}

/** Wraps content in a stream that releases it once read, because the archive keeps its streams for a while. */
function toReadable(content: ArchiveFile['content']): Readable {
  if (typeof content !== 'string') return Readable.from(content)
  let rest: string | undefined = content
  return new Readable({
    read() {
      if (rest !== undefined) this.push(Buffer.from(rest))
      rest = undefined
      this.push(null)
    },
  })
}
