import { createLog } from '../../../tasks/log.ts'
import { parseSettings } from '../../../tasks/settings.ts'
import { startWorker } from '../../../workers/worker.ts'

/** A worker as `workers/run.ts` starts it, with the tasks of effects.ts. Its messages: ready, then its lease on request. */
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
