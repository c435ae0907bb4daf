import { Readable } from 'node:stream'
import { ZipFile } from 'yazl'
import { type PostMatter, toMarkdown } from '../../../tasks/blog/markdown.ts'

/** A file to add to an archive. */
export interface ArchiveFile {
  readonly name: string
  readonly text: string
  readonly changed: Date
}

/** Packs posts, each given as JSON text, into an archive of Markdown files. */
export const archiveOfPosts = (posts: AsyncIterable<string>): AsyncGenerator<Uint8Array> =>
  archive(filesOf(posts))

/**
 * A zip archive of a stream of files: each file is requested once the previous one is packed, at the pace of the
 * reader. The only importer of `yazl`.
 */
export async function* archive(files: AsyncIterable<ArchiveFile>): AsyncGenerator<Uint8Array> {
  const zip = new ZipFile()
  const output = zip.outputStream as Readable
  let current: Readable | undefined
  const pack = async (): Promise<void> => {
    for await (const { name, text, changed } of files) {
      if (output.destroyed) return
      const source = readableOf(text)
      current = source
      const packed = new Promise((resolve) => source.once('close', resolve))
      zip.addReadStream(source, name, { mtime: changed, mode: 0o100644 })
      await packed
    }
    zip.end()
  }
  const packing = pack().catch((error) => void output.destroy(error))
  try {
    for await (const chunk of output) yield chunk as Uint8Array
  } finally {
    // A reader that leaves early leaves a file half packed.
    output.destroy()
    current?.destroy()
    await packing
  }
}

async function* filesOf(posts: AsyncIterable<string>): AsyncGenerator<ArchiveFile> {
  for await (const text of posts) {
    const post = JSON.parse(text) as PostMatter & { content: string; updated_at: string }
    yield { name: `${post.slug}.md`, text: toMarkdown(post), changed: packable(post.updated_at) }
  }
}

// Within the years that an archive can represent.
const [EARLIEST, LATEST] = [Date.UTC(1980, 0, 2), Date.UTC(2038, 0, 1)]
const packable = (at: string): Date => new Date(Math.min(Math.max(Date.parse(at), EARLIEST), LATEST))

/** A stream of one text, released once it is read: the archive keeps the streams of all its files. */
function readableOf(text: string): Readable {
  let rest: string | undefined = text
  return new Readable({
    read() {
      if (rest !== undefined) this.push(Buffer.from(rest))
      rest = undefined
      this.push(null)
    },
  })
}
