import type { z } from 'zod'
import type { Kept } from '../../sql/retention.ts'
import { count } from '../setting-fields.ts'

/** How long is kept what nobody deletes: see `sql/retention.ts`. */

const days = (fallback: number) => count(fallback, 0, 36_500)

export const retentionShape = {
  AUDIT_KEEP_DAYS: days(365),
  SENDS_KEEP_DAYS: days(90),
  AI_USAGE_KEEP_DAYS: days(365),
  PREVIEWS_KEEP_DAYS: days(30),
  INVITES_KEEP_DAYS: days(90),
  DELETED_DOCUMENTS_KEEP_DAYS: days(30),
  SEARCH_WORDS_KEEP_DAYS: days(30),
  PAYMENT_EVENTS_KEEP_DAYS: days(90),
}

/** In days; 0: for ever. */
export type RetentionSettings = Readonly<Record<Kept, number>>

export function retentionSettings(env: z.output<z.ZodObject<typeof retentionShape>>): RetentionSettings {
  return {
    audit: env.AUDIT_KEEP_DAYS,
    sends: env.SENDS_KEEP_DAYS,
    usage: env.AI_USAGE_KEEP_DAYS,
    previews: env.PREVIEWS_KEEP_DAYS,
    invites: env.INVITES_KEEP_DAYS,
    deletedDocuments: env.DELETED_DOCUMENTS_KEEP_DAYS,
    searchWords: env.SEARCH_WORDS_KEEP_DAYS,
    paymentEvents: env.PAYMENT_EVENTS_KEEP_DAYS,
  }
}
