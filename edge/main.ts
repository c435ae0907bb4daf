import { enableCompileCache } from 'node:module'

enableCompileCache()
const { runEdge } = await import('./run.ts')
await runEdge()
