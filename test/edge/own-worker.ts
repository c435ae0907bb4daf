import { createLog } from '../../tasks/log.ts'
import { parse } from '../../tasks/settings.ts'
import { startWorker } from '../../workers/worker.ts'
import { stopAfterFile } from '../services.ts'
import { SECRET } from './harness.ts'

/** A worker in the test's own process. */

const silent = await createLog('silent', 'worker')

// A tenth of what it is in production.
const RETRY_MS = 100

/** Starts one for some queues; stopped after the file, or before. */
export async function startOwnWorker(
  url: string,
  queues: string,
  env: Readonly<Record<string, string>>,
): Promise<{ stop(): Promise<void> }> {
  const settings = parse({ NODE_ENV: 'test', SECRET_KEY: SECRET, WORKER_QUEUES: queues, ...env })
  const worker = await startWorker({
    settings,
    databaseUrl: url,
    directUrl: url,
    log: silent,
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
