import type { z } from 'zod'
import type { RetentionName } from '../../sql/retention/retention.ts'
import { countField } from '../platform/settings/fields.ts'

/** Retention settings; see `sql/retention/retention.ts`. */

const daysField = (fallback: number) => countField(fallback, 0, 36_500)

export const retentionShape = {
  AUDIT_KEEP_DAYS: daysField(365),
  SENDS_KEEP_DAYS: daysField(90),
  AI_USAGE_KEEP_DAYS: daysField(365),
  PREVIEWS_KEEP_DAYS: daysField(30),
  INVITES_KEEP_DAYS: daysField(90),
  DELETED_DOCUMENTS_KEEP_DAYS: daysField(30),
  SEARCH_WORDS_KEEP_DAYS: daysField(30).refine((days) => days === 0 || days >= 7, 'must be 0 or at least 7'),
  PAYMENT_EVENTS_KEEP_DAYS: daysField(90),
  WEBHOOKS_KEEP_DAYS: daysField(30),
  EXPORTS_KEEP_DAYS: daysField(7),
}

/** Setting names by kind of data. */
export const RETENTION_SETTINGS = {
  audit: 'AUDIT_KEEP_DAYS',
  sends: 'SENDS_KEEP_DAYS',
  usage: 'AI_USAGE_KEEP_DAYS',
  previews: 'PREVIEWS_KEEP_DAYS',
  invites: 'INVITES_KEEP_DAYS',
  deletedDocuments: 'DELETED_DOCUMENTS_KEEP_DAYS',
  searchWords: 'SEARCH_WORDS_KEEP_DAYS',
  paymentEvents: 'PAYMENT_EVENTS_KEEP_DAYS',
  webhooks: 'WEBHOOKS_KEEP_DAYS',
  exports: 'EXPORTS_KEEP_DAYS',
} as const satisfies Record<RetentionName, keyof typeof retentionShape>

/** Retention in days; 0 means forever. */
export type RetentionSettings = Readonly<Record<RetentionName, number>>

export function buildRetentionSettings(env: z.output<z.ZodObject<typeof retentionShape>>): RetentionSettings {
  const days = Object.entries(RETENTION_SETTINGS).map(([kept, name]) => [kept, env[name]])
  return Object.fromEntries(days) as RetentionSettings
}
