import { enableCodeCache } from '../tasks/platform/code-cache.ts'

enableCodeCache()
// graphile-worker reads this variable while it loads. Without it, every delivery would format a log line that we
// discard.
process.env.NO_LOG_SUCCESS = '1'
const { runWorker } = await import('./run.ts')
await runWorker()
