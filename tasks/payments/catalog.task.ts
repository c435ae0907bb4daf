import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { Catalog } from './shapes.ts'

/** Lists the provider's active prices. Concurrent callers share one job. */
export const listPrices = defineTask({
  name: 'payments.catalog',
  queue: 'payments',
  pool: 'io',
  actor: () => 'payment_catalog',
  whenBusy: 'join',
  payload: z.strictObject({}),
  result: Catalog,
  timeoutSeconds: 90,
  run: loadLazily(() => import('./catalog.work.ts')),
})
