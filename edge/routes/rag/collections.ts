import { z } from 'zod'
import { readWithin } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { markCollectionDeleted } from '../../../sql/rag/collections.ts'
import {
  COLLECTION_ORDER,
  FILE_ORDER,
  readCollection,
  readCollectionKind,
  readCollections,
  readFiles,
  toViewerValues,
} from '../../../sql/rag/reads.ts'
import { purgeCollections } from '../../../tasks/rag/purge.task.ts'
import { enqueue } from '../../../tasks/task.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { answerArray, buildCursorSchema } from '../../pipeline/request/lists.ts'
import { count } from '../../pipeline/request/schemas.ts'
import { type Answer, answerJson, route } from '../../pipeline/route.ts'
import { requireOperator, viewerOf } from './access.ts'
import { Collection, CollectionParams, DeletionResult, Files } from './shapes.ts'

function answerCollection<T>(text: string | null): Answer<T> {
  if (text === null) throw fail('rag.missing')
  return answerJson(text)
}

const buildCollectionValues = ({ name }: { readonly name: string }, caller: Caller) =>
  [name, ...toViewerValues(viewerOf(caller))] as const

const LimitParameter = count({ min: 1, max: 1000, fallback: 1000 })

export const collectionRoutes = [
  route({
    method: 'get',
    path: '/collections',
    summary: 'List collection names',
    description: 'On all routes, only the owner and admins see a collection of documents.',
    query: z.object({ limit: LimitParameter, cursor: buildCursorSchema(COLLECTION_ORDER) }),
    response: z.array(z.string()).meta({ id: 'RagCollections' }),
    reads: 'list',
    handle: async ({ query, caller, reader, request }) => {
      const page = [query.cursor ?? null, 0, query.limit] as const
      return answerArray(
        (await reader.text(readCollections, [...toViewerValues(viewerOf(caller)), ...page]))!,
        request,
      )
    },
  }),

  route({
    method: 'get',
    path: '/collections/:name',
    summary: 'Get a collection',
    description: '`metadata` has the request of the last indexing run.',
    params: CollectionParams,
    response: Collection,
    errors: ['rag.missing'],
    handle: async ({ params, caller, edge }) =>
      answerCollection(await edge.reader.text(readCollection, buildCollectionValues(params, caller))),
  }),

  route({
    method: 'get',
    path: '/collections/:name/files',
    summary: 'List the files of a collection',
    description: 'The source of a document is `documents/ID`. The totals count the files of all pages.',
    params: CollectionParams,
    query: z.object({ limit: LimitParameter, cursor: buildCursorSchema(FILE_ORDER) }),
    response: Files,
    errors: ['rag.missing'],
    reads: 'list',
    handle: async ({ params, query, caller, reader }) =>
      answerCollection(
        await reader.text(readFiles, [
          ...buildCollectionValues(params, caller),
          query.cursor ?? null,
          0,
          query.limit,
        ]),
      ),
  }),

  route({
    method: 'delete',
    path: '/collections/:name',
    summary: 'Delete a collection',
    description:
      'Hides the collection immediately; a job then deletes its rows. A run that is indexing it has no effect. ' +
      'Only callers who may index files can delete collections of files.',
    params: CollectionParams,
    response: DeletionResult,
    errors: ['rag.missing', 'auth.forbidden'],
    handle: ({ params, edge, caller, requestId, transaction }) =>
      transaction(async (tx) => {
        const kind = await readWithin(tx, readCollectionKind, buildCollectionValues(params, caller))
        if (kind === null) throw fail('rag.missing')
        const { id, of_documents } = JSON.parse(kind) as { id: number; of_documents: boolean }
        if (!of_documents) requireOperator(edge, caller)
        if ((await tx.maybeOne(markCollectionDeleted(id))) === null) throw fail('rag.missing')
        // Without an owner: a full queue must not prevent a deletion.
        await enqueue(tx, purgeCollections, {}, { ownerId: null, requestId, settings: edge.settings })
        return { deleted: true as const, collection_name: params.name }
      }),
  }),
]
