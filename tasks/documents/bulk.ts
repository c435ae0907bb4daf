import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

export const MAX_IN_BULK = 1000
const MAX_LINKS = 20

const ids = z.array(z.int().min(1)).min(1).max(MAX_IN_BULK)
export const Label = z.string().trim().min(1).max(64)

/** What is done to several documents at once. */
export const BulkAction = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('tag'), ids, label: Label }).meta({ id: 'DocumentsTag' }),
  z.strictObject({ action: z.literal('untag'), ids, label: Label }).meta({ id: 'DocumentsUntag' }),
  z
    .strictObject({ action: z.literal('delete'), ids, permanent: z.boolean().default(false) })
    .meta({ id: 'DocumentsDelete' }),
  z.strictObject({ action: z.literal('extract'), ids }).meta({ id: 'DocumentsExtract' }),
])
export type BulkAction = z.output<typeof BulkAction>

export const BulkResult = z.strictObject({
  /** Documents that are as asked for now, those that were before included. */
  done: z.int(),
  refused: z.array(z.strictObject({ id: z.int(), code: z.string(), detail: z.string() })),
})
export type BulkResult = z.output<typeof BulkResult>

/**
 * Tags, deletes or extracts documents of its owner, some of them in each transaction. Each step leaves a document as asked for,
 * so that doing it again changes nothing.
 */
export const bulk = defineTask({
  name: 'documents.bulk',
  queue: 'system',
  pool: 'io',
  // What somebody asks for first is done first.
  actor: (_, ownerId) => `documents:${ownerId ?? 0}`,
  // The payload has all of them.
  links: ({ ids }) => ids.slice(0, MAX_LINKS).map((id) => ({ kind: 'document', id })),
  payload: BulkAction,
  result: BulkResult,
  run: lazily(() => import('./bulk-run.ts')),
})
