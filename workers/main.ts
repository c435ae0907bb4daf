import { keepCode } from '../tasks/code-cache.ts'

keepCode()
// graphile-worker reads this when it is loaded: without it, every job formats a log line that nobody sees.
process.env.NO_LOG_SUCCESS = '1'
const { runWorker } = await import('./run.ts')
await runWorker()
