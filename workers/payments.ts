import type { Database } from '../sql/db.ts'
import { storeMissingRights } from '../sql/payments/key.ts'
import type { Log } from '../tasks/platform/log.ts'
import { type Periodic, runPeriodically } from '../tasks/platform/periodic.ts'
import type { Settings } from '../tasks/platform/settings/settings.ts'

// An operator who adds a right at the provider sees it in the status after this time at the latest.
const INTERVAL_MS = 600_000

/**
 * Checks the rights of the payment provider's key, at the start and every 10 minutes. Stores the missing ones for
 * `GET /payment/status`, and logs them when they change.
 */
export function watchPaymentKey(db: Database, log: Log, settings: Settings): Periodic {
  let logged = ''
  const check = async (): Promise<void> => {
    const { listMissingRights } = await import('./providers/payments/rights.ts')
    const missing = await listMissingRights(settings.payments)
    const text = missing.join(', ')
    if (text !== logged) {
      if (missing.length > 0)
        log.error({ missing }, `PROVIDER_SECRET_KEY lacks rights at the provider: ${text}`)
      else log.info('PROVIDER_SECRET_KEY has all rights at the provider now')
      logged = text
    }
    await db.run(storeMissingRights(missing))
  }
  const watch = runPeriodically(INTERVAL_MS, check, (error) =>
    log.warn({ err: error }, 'Failed to check the rights of the payment key'),
  )
  void watch.runNow()
  return watch
}
