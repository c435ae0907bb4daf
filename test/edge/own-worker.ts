import { connect } from '../../sql/connections/driver.ts'
import { createLog } from '../../tasks/platform/log.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { declareBuiltIns } from '../../tasks/schedules/built-in.ts'
import { startWorker } from '../../workers/worker.ts'
import { KEY_MATERIAL } from '../keys.ts'
import { stopAfterFile } from '../services.ts'
import { SECRET } from './harness.ts'

/** Runs a worker in the test process. */

const silentLog = await createLog('silent', 'worker')

// A tenth of the production value.
const RETRY_MS = 100

/**
 * Starts a worker for the given queues. The worker stops after the test file at the latest. Schedules are paused, so
 * tests run scheduled tasks themselves.
 */
export async function startOwnWorker(
  url: string,
  queues: string,
  env: Readonly<Record<string, string>>,
): Promise<{ stop(): Promise<void> }> {
  const settings = parseSettings({ NODE_ENV: 'test', SECRET_KEY: SECRET, WORKER_QUEUES: queues, ...env })
  await pauseSchedules(url)
  const worker = await startWorker({
    settings,
    keys: KEY_MATERIAL,
    databaseUrl: url,
    directUrl: url,
    log: silentLog,
    retryMs: RETRY_MS,
  })
  let stopping: Promise<void> | null = null
  const stop = (): Promise<void> => {
    stopping ??= worker.stop()
    return stopping
  }
  stopAfterFile(stop)
  return { stop }
}

/** Stores all schedules as paused, because a run could take the rows that a test prepared for its own run. */
async function pauseSchedules(url: string): Promise<void> {
  const client = await connect({ url, applicationName: 'test-schedule' })
  await client.query(
    `insert into schedule (id, is_built_in, name, task_name, queue_type, args, cron, time_zone, overlap, catch_up, paused_at)
     select id, true, id, task_name, queue_type, '{}', cron, 'UTC', 'skip', 'none', now()
     from jsonb_to_recordset($1::jsonb) as declared(id text, task_name text, queue_type text, cron text)
     on conflict (id) do nothing`,
    [JSON.stringify(declareBuiltIns(0))],
  )
  await client.end()
}
