import { z } from 'zod'
import {
  DOCUMENT_ORDERS,
  readDocuments,
  readTaggedDocuments,
  readTrash,
  TRASH_ORDER,
} from '../../../sql/documents/documents.ts'
import { SEARCH_ORDERS, searchDocuments } from '../../../sql/documents/search.ts'
import { buildPageQueryFields, buildPageValues, buildSortSchema } from '../../pipeline/request/lists.ts'
import { Day, option } from '../../pipeline/request/schemas.ts'
import { answerCompactJson, area, route } from '../../pipeline/route.ts'
import { contentRoute } from './content.ts'
import { pageRoutes } from './pages.ts'
import { recordRoutes } from './records.ts'
import { Document, DocumentList } from './shapes.ts'
import { uploadDocument } from './upload.ts'

const UploadForm = z
  .strictObject({
    file: z.string().meta({ format: 'binary' }),
    title: z.string().optional(),
    kind: z.string().optional(),
    document_date: z.string().optional(),
    source: z.string().optional(),
    channel: z.string().optional(),
    note: z.string().optional(),
    tags: z
      .array(z.string())
      .optional()
      .meta({ description: 'Repeat the field, or send one JSON array; at most 100 labels' }),
  })
  .meta({ id: 'DocumentUpload' })

const hasSearchText = (text = ''): boolean => text.trim() !== ''

const NEWEST_FIRST = { column: 'received_at', direction: 'desc' } as const
const BEST_FIRST = { column: 'rank', direction: 'desc' } as const

export const documents = area('documents', '/api/v1/documents', { auth: 'user' }, [
  route({
    method: 'post',
    path: '',
    summary: 'Upload a document',
    description:
      'Identical bytes are stored once per owner: a second upload returns 200 with the existing document.',
    body: UploadForm,
    bodyType: 'multipart',
    response: Document,
    status: 201,
    alsoAnswers: { 200: 'The existing document with the same bytes' },
    errors: [
      'document.empty',
      'document.file_required',
      'document.store_failed',
      'quota.documents',
      'quota.bytes',
      'quota.file_bytes',
      'request.too_large',
      'request.malformed',
      'request.media_type',
    ],
    sideEffect: true,
    raw: uploadDocument,
  }),

  route({
    method: 'get',
    path: '',
    summary: 'List the documents of the caller',
    description: `Sorted newest first, or best match first with \`search\`, unless \`sort\` is given. \`search\` covers \
title, note, tags and page text, ignoring accents, vowel marks and case. Every word must occur. It also matches as the \
beginning of another word, with another ending, as part of a word if that finds little, and with one wrong, missing or \
additional letter if a long word finds nothing. Digits and letters are separate words: \`40718\` finds INV-40718. Numbers \
and dates match in any notation: \`1284.50\` finds 1,284.50, and \`2026-03-14\` finds 14 March 2026. In scripts without \
spaces, such as Chinese and Thai, each sequence of characters is found. \
"quoted words" must occur together; a word or phrase after \`-\` must not occur. \`trashed\` lists the trash instead, \
latest deleted first, including superseded documents; it can be searched, but not sorted. \`from\` and \`to\` include the \
days that they name; a document without \`document_date\` counts by the day on which it was received. With \`hits\`, each \
found document has its first matching pages, at most three, with a snippet of each.`,
    query: z
      .object({
        ...buildPageQueryFields([...Object.values(SEARCH_ORDERS), TRASH_ORDER], { max: 200, fallback: 50 }),
        kind: z.string().max(32).optional(),
        tag: z
          .array(z.string().max(64))
          .max(20)
          .optional()
          .meta({ description: 'Repeat it to require several tags' }),
        from: Day.optional(),
        to: Day.optional(),
        sort: buildSortSchema(DOCUMENT_ORDERS),
        search: z.string().max(500).optional(),
        include_superseded: option(),
        trashed: option(),
        hits: option(),
      })
      .refine(({ sort, trashed }) => !(trashed && sort !== undefined), {
        error: 'cannot be combined with `trashed`',
        path: ['sort'],
      })
      .refine(({ hits, trashed }) => !(trashed && hits), {
        error: 'cannot be combined with `trashed`',
        path: ['hits'],
      }),
    response: DocumentList,
    reads: 'search',
    handle: async ({ query, caller, reader }) => {
      const {
        kind = null,
        tag = null,
        from = null,
        to = null,
        search = '',
        include_superseded,
        trashed,
        hits,
      } = query
      const filters = [caller.ownerId, kind, tag, from, to] as const
      const read = (): Promise<string | null> => {
        if (trashed)
          return reader.text(readTrash, [...filters, search.trim(), ...buildPageValues(query, TRASH_ORDER)])
        const listed = [...filters, include_superseded] as const
        if (!hasSearchText(search)) {
          const { column, direction } = query.sort ?? NEWEST_FIRST
          const values = buildPageValues(query, DOCUMENT_ORDERS[column])
          const statements = tag === null ? readDocuments : readTaggedDocuments
          return reader.text(statements[column][direction], [...listed, ...values])
        }
        const { column, direction } = query.sort ?? BEST_FIRST
        const values = buildPageValues(query, SEARCH_ORDERS[column])
        return reader.text(searchDocuments[column][direction], [...listed, search, hits, ...values])
      }
      return answerCompactJson((await read())!)
    },
  }),

  ...recordRoutes,

  contentRoute,
  ...pageRoutes,
])
