import { type PostFrontMatter, toMarkdown } from '../../../tasks/blog/markdown.ts'
import { type ArchiveFile, createArchive } from '../../../tasks/formats/archive.ts'

/** Packs posts, given as JSON texts, into a zip archive of Markdown files. */
export const archivePosts = (posts: AsyncIterable<string>): AsyncGenerator<Uint8Array> =>
  createArchive(markdownFiles(posts))

async function* markdownFiles(posts: AsyncIterable<string>): AsyncGenerator<ArchiveFile> {
  for await (const text of posts) {
    const post = JSON.parse(text) as PostFrontMatter & { content: string; updated_at: string }
    yield { name: `${post.slug}.md`, content: toMarkdown(post), modifiedAt: clampTime(post.updated_at) }
  }
}

// MS-DOS dates in a zip archive begin in 1980, and its Unix times end in 2038.
const [EARLIEST, LATEST] = [Date.UTC(1980, 0, 2), Date.UTC(2038, 0, 1)]
const clampTime = (at: string): Date => new Date(Math.min(Math.max(Date.parse(at), EARLIEST), LATEST))
