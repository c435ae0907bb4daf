import { z } from 'zod'
import { SEARCH_ORDER, searchDocuments } from '../../sql/documents/search.ts'
import { DOCUMENT_ORDER, readDocuments, readTrash, TRASH_ORDER } from '../../sql/documents.ts'
import { numbered, pageValues } from '../pipeline/lists.ts'
import { area, route, verbatim } from '../pipeline/route.ts'
import { contentRoute } from './documents/content.ts'
import { pageRoutes } from './documents/pages.ts'
import { recordRoutes } from './documents/records.ts'
import { Document, DocumentList } from './documents/shapes.ts'
import { upload } from './documents/upload.ts'

const UploadForm = z
  .object({
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
    summary: 'List the documents of the caller, newest first, or best first with a search',
    description: `\`search\` covers title, note, tags and the text of the pages, ignoring accents and case. Every word \
must occur, possibly as the beginning of another word, or as part of one if that finds little; "quoted words" must occur together; a word or phrase after \`-\` must \
not occur. \`trashed\` lists the trash instead, superseded documents included, the one deleted last first; it can't be \
searched. With \`hits\` each document of a search has the first pages that match, three at most, with a snippet of each.`,
    query: z
      .object({
        ...numbered([DOCUMENT_ORDER, SEARCH_ORDER, TRASH_ORDER], { most: 200, fallback: 50 }),
        kind: z.string().max(32).optional(),
        tag: z.string().max(64).optional(),
        search: z.string().max(500).optional(),
        include_superseded: z.stringbool().default(false),
        trashed: z.stringbool().default(false),
        hits: z.stringbool().default(false),
      })
      .refine(({ search, trashed }) => !(trashed && isSearch(search)), {
        error: 'does not cover the trash',
        path: ['search'],
      }),
    response: DocumentList,
    reads: 'search',
    handle: async ({ query, caller, reader }) => {
      const { kind = null, tag = null, search = '', include_superseded, trashed, hits } = query
      const filters = [caller.ownerId, kind, tag] as const
      const read = (): Promise<string | null> => {
        if (trashed) return reader.text(readTrash, [...filters, ...pageValues(query, TRASH_ORDER)])
        const listed = [...filters, include_superseded] as const
        if (!isSearch(search))
          return reader.text(readDocuments, [...listed, ...pageValues(query, DOCUMENT_ORDER)])
        return reader.text(searchDocuments, [...listed, search, hits, ...pageValues(query, SEARCH_ORDER)])
      }
      return verbatim((await read())!)
    },
  }),

  ...recordRoutes,

  contentRoute,
  ...pageRoutes,
])
