import { z } from 'zod'
import type { PostStatus } from '../../../sql/blog/posts.ts'
import { parseExportedPost, readExportedPosts } from '../../../sql/blog/transfer.ts'
import type { Reads } from '../../../sql/reads/slow-reads.ts'
import { sendPieces } from '../../http/pieces.ts'
import type { Header } from '../../http/reply.ts'
import { route } from '../../pipeline/route.ts'
import { Exported, Status } from './shapes.ts'

/** Exports all posts unchanged, in formats that the import reads. */
export const exportRoute = route({
  method: 'get',
  path: '/export',
  summary: 'Export all posts',
  description: `Returns a zip archive of Markdown files, or one JSON array, with posts in the order of their creation. \
Importing either format into an empty blog reproduces the same export.`,
  auth: 'editor',
  query: z.object({
    format: z.enum(['markdown', 'json']).default('markdown'),
    status_filter: Status.optional(),
  }),
  response: z.array(Exported),
  produces: 'application/zip',
  reads: 'list',
  mayLag: true,
  raw: async ({ query, reader, request, responder, head }) => {
    const zip = query.format === 'markdown'
    const headers: Header[] = [
      ['content-type', zip ? 'application/zip' : 'application/json; charset=utf-8'],
      ['content-disposition', `attachment; filename="blog.${zip ? 'zip' : 'json'}"`],
      ['cache-control', 'no-store'],
    ]
    if (request.method === 'HEAD') {
      responder.send({ ...head(200, headers), isHead: true })
      return undefined
    }
    const posts = readAllPosts(reader, query.status_filter ?? null)
    const pieces = zip ? (await import('./archive.ts')).archivePosts(posts) : jsonArray(posts)
    await sendPieces(responder, () => head(200, headers), pieces)
    return undefined
  },
})

/** Yields every post as JSON text, and reads a few at a time. */
async function* readAllPosts(reader: Reads, status: PostStatus | null): AsyncGenerator<string> {
  for (let after = 0; ; ) {
    const posts = (await reader.texts(readExportedPosts, [after, status])).map(parseExportedPost)
    if (posts.length === 0) return
    for (const { json } of posts) yield json
    after = posts.at(-1)!.id
  }
}

async function* jsonArray(posts: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  let before = '['
  for await (const text of posts) {
    yield Buffer.from(`${before}${text}`)
    before = ','
  }
  yield Buffer.from(before === '[' ? '[]' : ']')
}
