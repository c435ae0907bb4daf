import { createLog } from '../../../tasks/platform/log.ts'
import { parseSettings } from '../../../tasks/platform/settings/settings.ts'
import { startWorker } from '../../../workers/worker.ts'

/**
 * Starts a worker as `workers/run.ts` does, with the tasks in effects.ts. Sends a first message when the worker is
 * ready, and the lease id on request.
 */
process.env.NO_LOG_SUCCESS = '1'
const url = process.env.DATABASE_URL!
const worker = await startWorker({
  settings: parseSettings({ ...process.env, WORKER_QUEUES: 'effects' }),
  databaseUrl: url,
  directUrl: url,
  log: await createLog('silent', 'worker'),
  taskModules: [new URL('./effects.ts', import.meta.url).href],
})
process.on('message', () => process.send!({ lease: worker.lease.id }))
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => {
  void worker.stop().then(() => process.exit())
})
process.send!({})
