import { enableCodeCache } from '../tasks/code-cache.ts'

enableCodeCache()
const { runEdge } = await import('./run.ts')
await runEdge()
