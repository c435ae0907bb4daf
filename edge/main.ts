import { enableCodeCache } from '../tasks/platform/code-cache.ts'

enableCodeCache()
const { runEdge } = await import('./run.ts')
await runEdge()
