import { z } from 'zod'
import { SEARCH_ORDERS, searchDocuments } from '../../sql/documents/search.ts'
import {
  DOCUMENT_ORDERS,
  readDocuments,
  readTaggedDocuments,
  readTrash,
  TRASH_ORDER,
} from '../../sql/documents.ts'
import { numbered, pageValues, sortedBy } from '../pipeline/lists.ts'
import { area, route, verbatim } from '../pipeline/route.ts'
import { Day, option } from '../pipeline/schemas.ts'
import { contentRoute } from './documents/content.ts'
import { pageRoutes } from './documents/pages.ts'
import { recordRoutes } from './documents/records.ts'
import { Document, DocumentList } from './documents/shapes.ts'
import { upload } from './documents/upload.ts'

const UploadForm = z
  .strictObject({
    file: z.string().meta({ format: 'binary' }),
    title: z.string().optional(),
    kind: z.string().optional(),
    document_date: z.string().optional(),
    source: z.string().optional(),
    channel: z.string().optional(),
    note: z.string().optional(),
  })
  .meta({ id: 'DocumentUpload' })

/** Whether there is something to look for. */
const isSearch = (text = ''): boolean => text.trim() !== ''

const NEWEST = { column: 'received_at', direction: 'desc' } as const
const BEST = { column: 'rank', direction: 'desc' } as const

export const documents = area(
  'documents',
  '/api/v1/documents',
  { auth: 'user', about: 'Files, and the text of their pages.' },
  [
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
        'request.too_large',
        'request.malformed',
        'request.media_type',
      ],
      sideEffect: true,
      raw: upload,
    }),

    route({
      method: 'get',
      path: '',
      summary:
        'List the documents of the caller, newest first, or best first with a search, unless `sort` is given',
      description: `\`search\` covers title, note, tags and the text of the pages, ignoring accents and case. Every word \
must occur, possibly as the beginning of another word, or as part of one if that finds little, or with one wrong, \
missing or additional letter if nothing is found of a long one. Numbers and dates are found however they are written: \`1284.50\` as 1,284.50, \`2026-03-14\` \
as 14 March 2026. "quoted words" must occur together; a word or phrase after \`-\` must \
not occur. \`trashed\` lists the trash instead, superseded documents included, the one deleted last first; it can't be \
searched. \`from\` and \`to\` \
include the days that they name; what has no \`document_date\` counts by the day on which it came. With \`hits\` each document of a search has the first pages that match, three at most, with a snippet of each.`,
      query: z
        .object({
          ...numbered([...Object.values(SEARCH_ORDERS), TRASH_ORDER], { max: 200, fallback: 50 }),
          kind: z.string().max(32).optional(),
          tag: z
            .array(z.string().max(64))
            .max(20)
            .optional()
            .meta({ description: 'Repeated: with each of them' }),
          from: Day.optional(),
          to: Day.optional(),
          sort: sortedBy(DOCUMENT_ORDERS),
          search: z.string().max(500).optional(),
          include_superseded: option(),
          trashed: option(),
          hits: option(),
        })
        .refine(({ search, trashed }) => !(trashed && isSearch(search)), {
          error: 'does not cover the trash',
          path: ['search'],
        })
        .refine(({ sort, trashed }) => !(trashed && sort !== undefined), {
          error: 'does not order the trash',
          path: ['sort'],
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
          if (trashed) return reader.text(readTrash, [...filters, ...pageValues(query, TRASH_ORDER)])
          const listed = [...filters, include_superseded] as const
          if (!isSearch(search)) {
            const { column, direction } = query.sort ?? NEWEST
            const values = pageValues(query, DOCUMENT_ORDERS[column])
            const statements = tag === null ? readDocuments : readTaggedDocuments
            return reader.text(statements[column][direction], [...listed, ...values])
          }
          const { column, direction } = query.sort ?? BEST
          const values = pageValues(query, SEARCH_ORDERS[column])
          return reader.text(searchDocuments[column][direction], [...listed, search, hits, ...values])
        }
        return verbatim((await read())!)
      },
    }),

    ...recordRoutes,

    contentRoute,
    ...pageRoutes,
  ],
)
