import { z } from 'zod'
import {
  findPageImage,
  PAGE_ORDER,
  readBytesPresence,
  readExtraction,
  readPage,
  readPages,
  readPageWords,
} from '../../../sql/documents/pages.ts'
import { fail } from '../../../sql/errors.ts'
import { renderPage } from '../../../tasks/documents/draw.task.ts'
import { Encoding } from '../../../tasks/documents/encoding.ts'
import { extractDocument } from '../../../tasks/documents/extract.task.ts'
import { ExtractCounts, sealPassword } from '../../../tasks/documents/extraction.ts'
import { assertLanguagesInstalled, Languages } from '../../../tasks/documents/languages.ts'
import { findWords, foldText, PlacedWord } from '../../../tasks/documents/words.ts'
import { buildJobSpecs, createJob } from '../../../tasks/task.ts'
import { matchesEtag } from '../../http/range.ts'
import type { Header } from '../../http/reply.ts'
import { toJobFailure } from '../../pipeline/answer/responders.ts'
import type { Edge } from '../../pipeline/context.ts'
import { answerArray, buildPageQueryFields, buildPageValues } from '../../pipeline/request/lists.ts'
import { option } from '../../pipeline/request/schemas.ts'
import { Answer, answerJson, route } from '../../pipeline/route.ts'
import type { JobEvent } from '../../streams/job-event.ts'
import { FormatQuery, sendPageMarkdown } from './markdown.ts'
import { DocumentParams, Page, PageParams, PageWithText } from './shapes.ts'

// PDF 2.0 allows 127 bytes of UTF-8 (ISO 32000-2, 7.6.4.3.3).
const MAX_PASSWORD_CHARACTERS = 127

const ExtractionRequest = z
  .strictObject({
    password: z.string().min(1).max(MAX_PASSWORD_CHARACTERS).optional(),
  })
  .meta({ id: 'DocumentExtraction' })

/** Errors of routes that draw a page, or read words from its image, in a job. */
const DRAWING_ERRORS = [
  'document.missing',
  'document.page_missing',
  'document.image_pending',
  'document.bytes_missing',
  'quota.waiting_jobs',
  'job.cancelled',
] as const

/** Routes that extract the text of a document's pages, and that serve the results. */
export const pageRoutes = [
  route({
    method: 'post',
    path: '/:id/extract',
    summary: 'Extract the text of a document',
    description: `Skips pages that were already read unless \`force\` is true. A request joins an unfinished extraction of \
the document. With \`force\` it joins only a forced one, with \`language\` or \`encoding\` only one with the same, and \
with \`password\` none; otherwise it runs afterwards. \`force\` also detects the type of the file again. \`encoding\` rereads \
a text that was read in another encoding, and later extractions use it, too. \`password\` opens an encrypted file. A correct password is stored \
encrypted, and later extractions and page images use it.`,
    params: DocumentParams,
    query: z.object({
      force: option(),
      language: Languages.optional().meta({
        description: 'Languages of the OCR, e.g. `deu+fra`; default: `OCR_LANGUAGES`',
      }),
      encoding: Encoding.optional().meta({
        description:
          'Encoding of a text, e.g. `windows-1251`, `shift_jis` or `cp850`; default: told by the bytes',
      }),
    }),
    body: ExtractionRequest.optional(),
    response: ExtractCounts.meta({ id: 'ExtractCounts' }),
    errors: [
      'document.missing',
      'document.bytes_missing',
      'document.language_missing',
      'document.password_wrong',
      'quota.pages',
    ],
    sideEffect: true,
    task: async ({ params, query, body, caller, edge, read }) => {
      const hasBytes = await read(readBytesPresence, [params.id, caller.ownerId])
      if (hasBytes === null) throw fail('document.missing')
      if (hasBytes === 'false') throw fail('document.bytes_missing')
      const { force, language, encoding } = query
      if (language !== undefined) assertLanguagesInstalled(language)
      const password = body?.password && sealPassword(edge.keys, params.id, body.password)
      return createJob(extractDocument, {
        documentId: params.id,
        force,
        ...(language !== undefined && { language }),
        ...(encoding !== undefined && { encoding }),
        ...(password && { sealedPassword: password }),
      })
    },
  }),

  route({
    method: 'get',
    path: '/:id/extraction',
    summary: 'Get the unfinished extraction of a document',
    description: '`job_id` is null if there is none.',
    params: DocumentParams,
    response: z.strictObject({ job_id: z.uuid().nullable() }),
    errors: ['document.missing'],
    handle: async ({ params, caller, edge }) => {
      const text = await edge.reader.text(readExtraction, [params.id, caller.ownerId])
      if (text === null) throw fail('document.missing')
      return answerJson(text)
    },
  }),

  route({
    method: 'get',
    path: '/:id/pages',
    summary: 'List the pages of a document',
    params: DocumentParams,
    query: z.object(buildPageQueryFields(PAGE_ORDER, { max: 1000, fallback: 1000 })),
    response: z.array(Page),
    errors: ['document.missing'],
    reads: 'list',
    handle: async ({ params, query, caller, reader, request }) => {
      const text = await reader.text(readPages, [params.id, caller.ownerId, ...buildPageValues(query)])
      if (text === null) throw fail('document.missing')
      return answerArray(text, request)
    },
  }),

  route({
    method: 'get',
    path: '/:id/pages/:number',
    summary: 'Get a page with its text',
    description:
      '`format=markdown` answers with the page alone: with its headings, lists and tables, or else as its text is.',
    params: PageParams,
    query: FormatQuery,
    response: PageWithText,
    produces: 'text/markdown',
    errors: ['document.page_missing'],
    raw: async (input) => {
      const { params, query, caller, edge } = input
      if (query.format === 'markdown') return sendPageMarkdown(input)
      const text = await edge.reader.text(readPage, [params.id, caller.ownerId, params.number])
      if (text === null) throw fail('document.page_missing')
      return answerJson(text)
    },
  }),

  route({
    method: 'get',
    path: '/:id/pages/:number/image',
    summary: 'Get the image of a page',
    params: PageParams,
    produces: 'image/png',
    alsoAnswers: { 304: 'The client already has this image' },
    errors: [...DRAWING_ERRORS, 'document.image_missing'],
    raw: async ({ params, caller, edge, request, requestId, responder, head }) => {
      const readImage = () => edge.db.maybeOne(findPageImage(params.id, caller.ownerId, params.number))
      const page = await readImage()
      if (page === null) throw fail('document.page_missing')
      const etag = `"${page.etag}"`
      const headers: Header[] = [
        ['etag', etag],
        ['cache-control', 'private, no-cache'],
      ]
      if (!page.drawable) throw fail('document.image_missing')
      if (matchesEtag(request.header('if-none-match'), etag)) return new Answer({ status: 304, headers })
      const disconnect = new AbortController()
      responder.onClose(() => disconnect.abort())
      const image =
        page.image ??
        (await drawPage(
          edge,
          { ...params, requestId, ownerId: caller.ownerId },
          readImage,
          disconnect.signal,
        ))
      if (responder.isDone) return undefined
      responder.send({
        ...head(200, [['content-type', 'image/png'], ...headers]),
        body: image,
        isHead: request.method === 'HEAD',
      })
      return undefined
    },
  }),

  route({
    method: 'get',
    path: '/:id/pages/:number/words',
    summary: 'Find words on the image of a page',
    description: `Returns the words of the page that begin like those of \`search\` or contain such a beginning, at most \
300, to mark them on its image. Places and sizes are shares of its width and height, from its left and top. Pages of PDFs with a \
text layer and pages that OCR read have places; for all others, the list is empty.`,
    params: PageParams,
    query: z.object({ search: z.string().max(500) }),
    response: z.array(PlacedWord.meta({ id: 'DocumentWord' })),
    errors: DRAWING_ERRORS,
    raw: async ({ params, query, caller, edge, requestId, responder }) => {
      const text = await edge.reader.text(readPageWords, [params.id, caller.ownerId, params.number])
      if (text === null) throw fail('document.page_missing')
      const { method, has_image, words } = JSON.parse(text) as WordSource
      const find = listBeginnings(query.search)
      if (!has_image || find.length === 0) return answerJson('[]')
      if (method !== 'text_layer') return answerJson(JSON.stringify(findWords(words ?? [], find)))
      const disconnect = new AbortController()
      responder.onClose(() => disconnect.abort())
      const origin = { ...params, requestId, ownerId: caller.ownerId }
      const end = await runDrawing(edge, origin, find, disconnect.signal)
      const { result } = JSON.parse(end.frame) as { result: { words?: unknown } }
      return answerJson(JSON.stringify(result.words ?? []))
    },
  }),
]

interface WordSource {
  readonly method: string
  readonly has_image: boolean
  /** Null unless OCR read the page. */
  readonly words: z.output<typeof PlacedWord>[] | null
}

const MAX_SOUGHT_WORDS = 20
// A search also finds other endings, and clients decide about them.
const BEGINNING_LENGTH = 4

/** Returns the beginnings of the words of a search, in an order that depends on nothing else. */
function listBeginnings(search: string): string[] {
  const words = foldText(search).match(/\p{L}+|\p{N}+/gu) ?? []
  const beginnings = words.map((word) => [...word].slice(0, BEGINNING_LENGTH).join(''))
  return [...new Set(beginnings)].sort().slice(0, MAX_SOUGHT_WORDS)
}

interface PageRequest {
  readonly id: number
  readonly number: number
  readonly requestId: string
  readonly ownerId: number | null
}

const RETRY_AFTER_SECONDS = 5

/**
 * Enqueues a job that draws a page, or finds words on it, and waits for it. Concurrent requests share the job.
 * @throws fail('document.image_pending') if the job takes too long.
 */
async function runDrawing(
  edge: Edge,
  { id, number, requestId, ownerId }: PageRequest,
  find: string[] | undefined,
  signal: AbortSignal,
): Promise<JobEvent> {
  const options = { ownerId, requestId, settings: edge.settings }
  const payload = { documentId: id, page: number, ...(find !== undefined && { find }) }
  const [added] = await edge.enqueuer.add(buildJobSpecs(renderPage, [payload], options))
  const end = await edge.hub.waitForTerminal(added!.job_id, edge.settings.requestWaitSeconds * 1000, signal)
  if (end === null) throw fail('document.image_pending', {}, { retryAfter: RETRY_AFTER_SECONDS })
  if (end.status !== 'done') throw toJobFailure(end)
  return end
}

/** Draws the image of a page in a job. */
async function drawPage(
  edge: Edge,
  page: PageRequest,
  readImage: () => Promise<{ readonly image: Uint8Array | null; readonly drawable: boolean } | null>,
  signal: AbortSignal,
): Promise<Uint8Array> {
  await runDrawing(edge, page, undefined, signal)
  const drawn = await readImage()
  if (drawn === null) throw fail('document.page_missing')
  // A new extraction has replaced the page in the meantime.
  if (drawn.image === null && drawn.drawable)
    throw fail('document.image_pending', {}, { retryAfter: RETRY_AFTER_SECONDS })
  if (drawn.image === null) throw fail('document.image_missing')
  return drawn.image
}
