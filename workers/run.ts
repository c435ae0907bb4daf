import { createLog } from '../tasks/log.ts'
import { onParentGone, secretKeyOf, settingsOrExit, stopOnSignals } from '../tasks/process.ts'
import { startWorker } from './worker.ts'

const STOP_MS = 9_000

/** One worker process. */
export async function runWorker(): Promise<void> {
  const settings = settingsOrExit()
  const log = await createLog(settings.logLevel, 'worker')
  if (settings.databaseUrl === undefined) {
    log.fatal('DATABASE_URL is not set: `npm start` runs everything with an embedded database')
    process.exit(2)
  }
  const worker = await startWorker({
    settings: { ...settings, secretKey: secretKeyOf(settings) },
    databaseUrl: settings.databaseUrl,
    directUrl: settings.databaseUrlUnpooled!,
    log,
  })
  const stop = stopOnSignals(log, STOP_MS, () => worker.stop())
  onParentGone(() => stop('the parent process is gone'))
  log.info({ lease: worker.lease.id }, 'The worker fetches jobs')
  process.send?.({ ready: true, lease: worker.lease.id })
}
