import { z } from 'zod'
import { MarkdownPages, readMarkdown, readPageMarkdown } from '../../../sql/documents/pages.ts'
import { fail } from '../../../sql/errors.ts'
import type { Reads } from '../../../sql/reads/slow-reads.ts'
import { sendPieces } from '../../http/pieces.ts'
import type { Header } from '../../http/reply.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Input, RawInput } from '../../pipeline/route.ts'

/** Serves the pages of documents as Markdown. */

/** The query of routes that also answer in Markdown. */
export const FormatQuery = z.object({
  format: z
    .enum(['json', 'markdown'])
    .default('json')
    .meta({ description: '`markdown` answers with GitHub Flavored Markdown' }),
})

const HEADERS: readonly Header[] = [['content-type', 'text/markdown; charset=utf-8']]
// A page has at most two million characters.
const PAGES_PER_READ = 16

type MarkdownInput<P> = Pick<
  Input<P, unknown, unknown, Caller> & RawInput,
  'params' | 'caller' | 'edge' | 'reader' | 'request' | 'responder' | 'head'
>

/** Answers with a page as Markdown. @throws fail('document.page_missing') */
export async function sendPageMarkdown({
  params,
  caller,
  edge,
  request,
  responder,
  head,
}: MarkdownInput<{ readonly id: number; readonly number: number }>): Promise<undefined> {
  const text = await edge.reader.text(readPageMarkdown, [params.id, caller.ownerId, params.number])
  if (text === null) throw fail('document.page_missing')
  const body = Buffer.from(z.string().parse(JSON.parse(text)))
  responder.send({ ...head(200, HEADERS), body, isHead: request.method === 'HEAD' })
}

/** Answers with all pages of a document as Markdown. @throws fail('document.missing') */
export async function sendDocumentMarkdown({
  params,
  caller,
  reader,
  request,
  responder,
  head,
}: MarkdownInput<{ readonly id: number }>): Promise<undefined> {
  const pieces = listPieces(reader, params.id, caller.ownerId)
  if (request.method === 'HEAD') {
    await pieces.next()
    responder.send({ ...head(200, HEADERS), isHead: true })
    return
  }
  await sendPieces(responder, () => head(200, HEADERS), pieces)
}

/** Yields the pages in order, each behind a comment with its number. */
async function* listPieces(reader: Reads, id: number, owner: number | null): AsyncGenerator<Uint8Array> {
  for (let after = 0; ; ) {
    const text = await reader.text(readMarkdown, [id, owner, after, PAGES_PER_READ])
    if (text === null) throw fail('document.missing')
    const pages = MarkdownPages.parse(JSON.parse(text))
    yield Buffer.from(
      pages.map(({ page_number, markdown }) => `<!-- page ${page_number} -->\n\n${markdown}\n\n`).join(''),
    )
    if (pages.length < PAGES_PER_READ) return
    after = pages.at(-1)!.page_number
  }
}
