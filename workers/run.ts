import { flushCompileCache } from 'node:module'
import { createLog, type Log } from '../tasks/platform/log.ts'
import {
  loadSettingsOrExit,
  resolveDatabaseUrls,
  startOrExit,
  stopOnSignals,
} from '../tasks/platform/process.ts'
import type { Settings } from '../tasks/platform/settings/settings.ts'
import { loadKeys } from '../tasks/platform/stored-keys.ts'
import { onSupervisorGone } from '../tasks/platform/supervised.ts'
import { checkSchedule } from '../tasks/schedules/entries.ts'
import { createJobLog, type JobLog } from './attempts/job-log.ts'
import { startWorker } from './worker.ts'

const STOP_TIMEOUT_MS = 9_000

/** Runs one worker process. */
export async function runWorker(): Promise<void> {
  const settings = loadSettingsOrExit()
  const jobLog = createJobLog()
  const log = await createLog(settings.logLevel, 'worker', jobLog.collect)
  await startOrExit(settings, log, () => startProcess(settings, log, jobLog))
}

async function startProcess(settings: Settings, log: Log, jobLog: JobLog): Promise<void> {
  // Until the worker exists, there is nothing to stop.
  let stop = (_reason: string): void => process.exit()
  onSupervisorGone(() => stop('the parent process is gone'))
  checkSchedule()
  const database = await resolveDatabaseUrls(settings, log)
  const worker = await startWorker({
    settings,
    keys: (await loadKeys(settings, database.databaseUrl, log)).material,
    ...database,
    log,
    jobLog,
  })
  stop = stopOnSignals(log, STOP_TIMEOUT_MS, () => worker.stop())
  log.info({ lease: worker.lease.id }, 'The worker is fetching jobs')
  process.send?.({ ready: true, lease: worker.lease.id })
  // Flush now: a killed process writes no cache at exit.
  flushCompileCache()
}
