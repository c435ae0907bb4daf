import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import {
  COLLECTION_ORDER,
  FILE_ORDER,
  readCollection,
  readCollections,
  readFiles,
} from '../../../sql/rag/reads.ts'
import { hideCollection } from '../../../sql/rag.ts'
import { purge } from '../../../tasks/rag/purge.ts'
import { enqueue } from '../../../tasks/task.ts'
import { array, cursor } from '../../pipeline/lists.ts'
import { type Answer, json, route } from '../../pipeline/route.ts'
import { count } from '../../pipeline/schemas.ts'
import { Collection, CollectionParams, Deleted, Files } from './shapes.ts'

function found<T>(text: string | null): Answer<T> {
  if (text === null) throw fail('rag.missing')
  return json(text)
}

const limit = count({ min: 1, max: 1000, fallback: 1000 })

export const collectionRoutes = [
  route({
    method: 'get',
    path: '/collections',
    summary: 'List the names of the collections',
    query: z.object({ limit, cursor: cursor(COLLECTION_ORDER) }),
    response: z.array(z.string()).meta({ id: 'RagCollections' }),
    reads: 'list',
    handle: async ({ query, reader, request }) =>
      array((await reader.text(readCollections, [query.cursor ?? null, 0, query.limit]))!, request),
  }),

  route({
    method: 'get',
    path: '/collections/:name',
    summary: 'Get a collection',
    description: '`metadata` is what the last run was requested with.',
    params: CollectionParams,
    response: Collection,
    errors: ['rag.missing'],
    handle: async ({ params, edge }) => found(await edge.reader.text(readCollection, [params.name])),
  }),

  route({
    method: 'get',
    path: '/collections/:name/files',
    summary: 'List the files of a collection',
    description: 'The totals count all of them.',
    params: CollectionParams,
    query: z.object({ limit, cursor: cursor(FILE_ORDER) }),
    response: Files,
    errors: ['rag.missing'],
    reads: 'list',
    handle: async ({ params, query, reader }) =>
      found(await reader.text(readFiles, [params.name, query.cursor ?? null, 0, query.limit])),
  }),

  route({
    method: 'delete',
    path: '/collections/:name',
    summary: 'Delete a collection',
    description:
      'The collection is gone at once; a job then removes its rows. A run that is indexing it ends without effect.',
    auth: 'operator',
    params: CollectionParams,
    response: Deleted,
    errors: ['rag.missing'],
    handle: ({ params, edge, caller, requestId, transaction }) =>
      transaction(async (tx) => {
        if ((await tx.maybeOne(hideCollection(params.name))) === null) throw fail('rag.missing')
        const { ownerId } = caller
        await enqueue(tx, purge, {}, { ownerId, requestId, maxTries: edge.settings.workerMaxTries })
        return { deleted: true as const, collection_name: params.name }
      }),
  }),
]
