import { z } from 'zod'
import { AppliedList, SkippedEntry } from '../../sql/llm/models.ts'
import { defineTask, loadLazily } from '../task.ts'

const SyncPayload = z.strictObject({ asked: z.boolean().optional(), force: z.boolean().optional() })

const SyncResult = z.strictObject({
  status: z.enum(['applied', 'fresh', 'off']),
  changes: AppliedList.nullable(),
  /** Invalid entries of the list, at most 100; absent if all are valid. */
  skipped: z.array(SkippedEntry).optional(),
})

/**
 * Updates the catalog from the list at `LLM_CATALOG_URL`, with all valid entries or not at all. The hourly schedule downloads the
 * list once a day; `asked` downloads it immediately. `force` accepts a list that differs implausibly from the last one.
 * If the task fails with `llm.list_failed` or `llm.list_refused`, the catalog stays unchanged.
 */
export const syncCatalog = defineTask({
  name: 'llm.sync',
  queue: 'system',
  pool: 'io',
  actor: () => 'llm_sync',
  payload: SyncPayload,
  result: SyncResult,
  timeoutSeconds: 180,
  run: loadLazily(() => import('./sync.work.ts')),
})
