import { z } from 'zod'
import { type Query, readWithin } from '../../../sql/db.ts'
import { lockDigest } from '../../../sql/documents/blobs.ts'
import {
  addTag,
  deleteDocuments,
  findTrashedDigest,
  readDocument,
  readTags,
  removeTag,
  restoreDocument,
  updateDocument,
} from '../../../sql/documents/documents.ts'
import { cancelExtractions } from '../../../sql/documents/pages.ts'
import { fail } from '../../../sql/errors.ts'
import { BulkAction, BulkResult, bulkDocuments, Label } from '../../../tasks/documents/bulk.task.ts'
import { refreshCollections } from '../../../tasks/rag/refresh-documents.task.ts'
import { createJob } from '../../../tasks/task.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { option } from '../../pipeline/request/schemas.ts'
import { type Answer, answerJson, route } from '../../pipeline/route.ts'
import { FormatQuery, sendDocumentMarkdown } from './markdown.ts'
import { answerDocument, Document, DocumentParams, METADATA } from './shapes.ts'

const { title, kind, document_date, note, channel } = METADATA

const Changes = z
  .strictObject({
    title: title.optional(),
    kind: kind.optional(),
    document_date: document_date.nullish(),
    note: note.nullish(),
    channel: channel.nullish(),
    supersedes_id: z.int().min(1).nullish(),
    protected: z.boolean().optional(),
  })
  .meta({ id: 'DocumentUpdate' })

const Tags = z.array(z.strictObject({ label: z.string(), count: z.int() })).meta({ id: 'DocumentTags' })

/** Routes for the records of documents and their tags. */
export const recordRoutes = [
  route({
    method: 'get',
    path: '/tags',
    summary: 'List document tags, most used first',
    description: 'Counts superseded documents, too. Returns at most 1000 tags.',
    response: Tags,
    reads: 'list',
    handle: async ({ caller, reader }) => answerJson((await reader.text(readTags, [caller.ownerId]))!),
  }),

  route({
    method: 'post',
    path: '/bulk',
    summary: 'Tag, delete or extract up to 1,000 documents',
    description: `One job with progress processes the documents one after the other. Its result counts the documents in \
the requested state, including unchanged ones, and lists the refused documents with the reason.`,
    body: BulkAction,
    response: BulkResult.meta({ id: 'DocumentsBulkResult' }),
    sideEffect: true,
    task: ({ body }) => createJob(bulkDocuments, body),
  }),

  route({
    method: 'get',
    path: '/:id',
    summary: 'Get a document',
    description:
      '`format=markdown` answers with its pages in order, each behind a comment such as `<!-- page 3 -->`.',
    params: DocumentParams,
    query: FormatQuery,
    response: Document,
    produces: 'text/markdown',
    errors: ['document.missing'],
    reads: 'list',
    raw: async (input) => {
      const { params, query, caller, edge } = input
      if (query.format === 'markdown') return sendDocumentMarkdown(input)
      return answerDocument(await edge.reader.text(readDocument, [params.id, caller.ownerId]))
    },
  }),

  route({
    method: 'patch',
    path: '/:id',
    summary: 'Update the metadata of a document',
    description: `Changes only the given fields; null clears a date, note, channel or supersession. A superseded \
document disappears from the default list.`,
    params: DocumentParams,
    body: Changes,
    response: Document,
    errors: [
      'document.missing',
      'document.supersedes_self',
      'document.supersedes_missing',
      'document.supersedes_taken',
      'document.supersedes_circle',
    ],
    handle: async ({ params, body, caller, edge, requestId }) => {
      const isEmpty = Object.values(body).every((value) => value === undefined)
      const change = updateDocument(params.id, caller.ownerId, dropAbsentFields(body))
      if (!isEmpty) await changeDocument({ edge, caller, requestId }, params.id, change)
      return answerCurrent(edge, params.id, caller.ownerId)
    },
  }),

  route({
    method: 'delete',
    path: '/:id',
    summary: 'Delete a document',
    description: `Moves the document to the trash, from which it can be restored for \`TRASH_DAYS\`. With \`permanent\`, \
deletes it immediately, also from the trash. Cancels an unfinished extraction of the document.`,
    params: DocumentParams,
    query: z.object({ permanent: option() }),
    errors: ['document.missing', 'document.protected'],
    handle: ({ params, query, caller, edge, requestId, transaction }) =>
      transaction(async (tx) => {
        const jobs = await tx.any(cancelExtractions([params.id], caller.ownerId))
        const trashDays = query.permanent ? null : edge.settings.trashDays
        const document = await tx.maybeOne(deleteDocuments([params.id], caller.ownerId, trashDays))
        if (document === null) throw fail('document.missing')
        if (document.protected) throw fail('document.protected')
        await refreshCollections(tx, [params.id], buildJobOptions({ edge, caller, requestId }))
        tx.afterCommit(() => {
          for (const { id } of jobs) edge.publisher.notify(id)
        })
        return undefined
      }),
  }),

  route({
    method: 'post',
    path: '/:id/restore',
    summary: 'Restore a document from the trash',
    description: `Restores its pages and tags. The document also supersedes its earlier predecessor again, unless that \
one was deleted or has another successor.`,
    params: DocumentParams,
    response: Document,
    errors: ['document.missing', 'document.stored_again'],
    sideEffect: true,
    handle: ({ params, caller, edge, requestId, transaction }) =>
      transaction(async (tx) => {
        const trashed = await tx.maybeOne(findTrashedDigest(params.id, caller.ownerId))
        if (trashed === null) throw fail('document.missing')
        // This lock serializes the restore with uploads of the same bytes, so that a later upload finds the restored
        // document.
        await tx.run(lockDigest(Buffer.from(trashed.sha256)))
        if ((await tx.maybeOne(restoreDocument(params.id, caller.ownerId))) === null)
          throw fail('document.missing')
        await refreshCollections(tx, [params.id], buildJobOptions({ edge, caller, requestId }))
        return answerDocument(await readWithin(tx, readDocument, [params.id, caller.ownerId]))
      }),
  }),

  route({
    method: 'post',
    path: '/:id/tags',
    summary: 'Add a tag to a document',
    description: 'Changes nothing if the document already has the tag.',
    params: DocumentParams,
    body: z.strictObject({ label: Label }).meta({ id: 'DocumentTag' }),
    response: Document,
    errors: ['document.missing', 'document.tags_full'],
    whyRepeatable: 'adding an existing tag changes nothing',
    handle: async ({ params, body, caller, edge, requestId }) => {
      const change = addTag([params.id], caller.ownerId, body.label)
      const { had, full } = await changeDocument({ edge, caller, requestId }, params.id, change)
      if (full && !had) throw fail('document.tags_full')
      return answerCurrent(edge, params.id, caller.ownerId)
    },
  }),

  route({
    method: 'delete',
    path: '/:id/tags/:label',
    summary: 'Remove a tag from a document',
    params: DocumentParams.extend({ label: Label }),
    response: Document,
    errors: ['document.missing', 'document.tag_missing'],
    handle: async ({ params, caller, edge, requestId }) => {
      const change = removeTag([params.id], caller.ownerId, params.label)
      const { had } = await changeDocument({ edge, caller, requestId }, params.id, change)
      if (!had) throw fail('document.tag_missing')
      return answerCurrent(edge, params.id, caller.ownerId)
    },
  }),
]

interface Actor {
  readonly edge: Edge
  readonly caller: Caller
  readonly requestId: string
}

/** Changes a document, and refreshes the collections that may contain it. @throws fail('document.missing') */
function changeDocument<T>(by: Actor, id: number, change: Query<T>): Promise<T> {
  return by.edge.db.transaction(async (tx) => {
    const row = await tx.maybeOne(change)
    if (row === null) throw fail('document.missing')
    await refreshCollections(tx, [id], buildJobOptions(by))
    return row
  })
}

const buildJobOptions = ({ edge, caller, requestId }: Actor) => ({
  ownerId: caller.ownerId,
  requestId,
  settings: edge.settings,
})

/**
 * Answers with the current state of a document.
 * @throws fail('document.missing') if it has been deleted in the meantime.
 */
async function answerCurrent(
  edge: Edge,
  id: number,
  owner: number | null,
): Promise<Answer<z.input<typeof Document>>> {
  return answerDocument(await edge.reader.text(readDocument, [id, owner]))
}

/** Drops absent keys, whose fields stay unchanged. Null clears a field. */
function dropAbsentFields<T extends object>(body: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as never
}
