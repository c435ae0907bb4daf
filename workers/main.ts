import { enableCodeCache } from '../tasks/code-cache.ts'

enableCodeCache()
// graphile-worker reads this while it loads. Without it, every delivery formats a log line that we discard.
process.env.NO_LOG_SUCCESS = '1'
const { runWorker } = await import('./run.ts')
await runWorker()
