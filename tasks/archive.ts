import { Readable } from 'node:stream'
import { ZipFile } from 'yazl'

/** A file to add to an archive. */
export interface ArchiveFile {
  readonly name: string
  readonly content: string | AsyncIterable<Uint8Array>
  readonly changed: Date
  /** It is as small as it gets, and is only stored. */
  readonly isPacked?: boolean
}

/**
 * A zip archive of a stream of files: each file is requested once the previous one is read, at the pace of the
 * reader, so that memory holds a part of one file, and 2 kB for each that was packed. The only importer of `yazl`.
 *
 * @throws what the files throw, and what is thrown while they are read.
 */
export async function* archive(files: AsyncIterable<ArchiveFile>): AsyncGenerator<Uint8Array> {
  const zip = new ZipFile()
  const output = zip.outputStream as Readable
  let current: Readable | null = null
  const pack = async (): Promise<void> => {
    for await (const { name, content, changed, isPacked = false } of files) {
      if (output.destroyed) return
      const source = readableOf(content)
      current = source
      const read = new Promise((resolve) => source.once('close', resolve))
      source.once('error', (error) => output.destroy(error))
      const options = { mtime: changed, mode: 0o100644, compress: !isPacked }
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
    // A reader that leaves early leaves a file half packed.
    output.destroy()
    ;(current as Readable | null)?.destroy()
    await packing
  }
}

/** A stream of a content, which is released once it is read: the archive keeps the streams of its files for a while. */
function readableOf(content: ArchiveFile['content']): Readable {
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
