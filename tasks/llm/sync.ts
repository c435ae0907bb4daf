import { z } from 'zod'
import { Applied } from '../../sql/llm.ts'
import { defineTask, lazily } from '../task.ts'

const SyncPayload = z.strictObject({ asked: z.boolean().optional(), force: z.boolean().optional() })
export type SyncPayload = z.output<typeof SyncPayload>

const SyncResult = z.strictObject({
  status: z.enum(['applied', 'fresh', 'off']),
  changes: Applied.nullable(),
})
export type SyncResult = z.output<typeof SyncResult>

/**
 * Makes the catalog say what the list at `LLM_CATALOG_URL` says, all at once or not at all. Run by the hour, it reads the
 * list once a day; `asked`: at once. `force` takes a list that differs more from the one before than it should.
 * Fails with `llm.list_failed` or `llm.list_refused`, which says why; the catalog stays what it was.
 */
export const sync = defineTask({
  name: 'llm.sync',
  queue: 'system',
  pool: 'io',
  actor: () => 'llm_sync',
  payload: SyncPayload,
  result: SyncResult,
  timeoutSeconds: 180,
  run: lazily(() => import('./sync-run.ts')),
})
