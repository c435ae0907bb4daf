import { keepCode } from '../tasks/code-cache.ts'

keepCode()
// graphile-worker reads it when it is loaded: without it every job formats a line that nobody sees.
process.env.NO_LOG_SUCCESS = '1'
const { runWorker } = await import('./run.ts')
await runWorker()
