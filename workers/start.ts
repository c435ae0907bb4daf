import { enableCodeCache } from '../tasks/platform/code-cache.ts'

enableCodeCache()
const { startAll } = await import('./processes/start-all.ts')
await startAll(process.argv.slice(2))
