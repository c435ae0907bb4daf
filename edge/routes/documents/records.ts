import { z } from 'zod'
import {
  addTag,
  deleteDocument,
  readDocument,
  readTags,
  removeTag,
  updateDocument,
} from '../../../sql/documents.ts'
import { fail } from '../../../sql/errors.ts'
import { cancelExtractions } from '../../../sql/pages.ts'
import type { Edge } from '../../pipeline/context.ts'
import { type Answer, json, route } from '../../pipeline/route.ts'
import { Document, DocumentParams, found, METADATA } from './shapes.ts'

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

const Label = z.string().trim().min(1).max(64)

const Tags = z.array(z.strictObject({ label: z.string(), count: z.int() })).meta({ id: 'DocumentTags' })

/** The record of a document, and its tags. */
export const recordRoutes = [
  route({
    method: 'get',
    path: '/tags',
    summary: 'List the tags of all documents, including superseded ones, most used first',
    description: 'Returns at most 1000.',
    response: Tags,
    reads: 'list',
    handle: async ({ caller, reader }) => json((await reader.text(readTags, [caller.ownerId]))!),
  }),

  route({
    method: 'get',
    path: '/:id',
    summary: 'Get a document',
    params: DocumentParams,
    response: Document,
    errors: ['document.missing'],
    handle: async ({ params, caller, edge }) =>
      found(await edge.reader.text(readDocument, [params.id, caller.ownerId])),
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
    handle: async ({ params, body, caller, edge }) => {
      const nothing = Object.values(body).every((value) => value === undefined)
      const row =
        nothing || (await edge.db.maybeOne(updateDocument(params.id, caller.ownerId, changesOf(body))))
      if (row === null) throw fail('document.missing')
      return now(edge, params.id, caller.ownerId)
    },
  }),

  route({
    method: 'delete',
    path: '/:id',
    summary: 'Delete a document',
    description: 'Cancels a running or waiting extraction of the document.',
    params: DocumentParams,
    errors: ['document.missing', 'document.protected'],
    handle: ({ params, caller, edge, transaction }) =>
      transaction(async (tx) => {
        const jobs = await tx.any(cancelExtractions(params.id, caller.ownerId))
        const document = await tx.maybeOne(deleteDocument(params.id, caller.ownerId))
        if (document === null) throw fail('document.missing')
        if (document.protected) throw fail('document.protected')
        tx.afterCommit(() => {
          for (const { id } of jobs) edge.publisher.notify(id)
        })
        return undefined
      }),
  }),

  route({
    method: 'post',
    path: '/:id/tags',
    summary: 'Add a tag to a document, unless it already has it',
    params: DocumentParams,
    body: z.strictObject({ label: Label }).meta({ id: 'DocumentTag' }),
    response: Document,
    errors: ['document.missing', 'document.tags_full'],
    repeatable: 'adding an existing tag changes nothing',
    handle: async ({ params, body, caller, edge }) => {
      const row = await edge.db.maybeOne(addTag(params.id, caller.ownerId, body.label))
      if (row === null) throw fail('document.missing')
      return now(edge, params.id, caller.ownerId)
    },
  }),

  route({
    method: 'delete',
    path: '/:id/tags/:label',
    summary: 'Remove a tag from a document',
    params: DocumentParams.extend({ label: Label }),
    response: Document,
    errors: ['document.missing', 'document.tag_missing'],
    handle: async ({ params, caller, edge }) => {
      const row = await edge.db.maybeOne(removeTag(params.id, caller.ownerId, params.label))
      if (row === null) throw fail('document.missing')
      if (!row.removed) throw fail('document.tag_missing')
      return now(edge, params.id, caller.ownerId)
    },
  }),
]

/** The document as it is now; 404 if it has been deleted meanwhile. */
async function now(edge: Edge, id: number, owner: number | null): Promise<Answer<z.input<typeof Document>>> {
  return found(await edge.reader.text(readDocument, [id, owner]))
}

/** Drops keys that were not given: an absent key leaves its field unchanged, null clears it. */
function changesOf<T extends object>(body: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as never
}
