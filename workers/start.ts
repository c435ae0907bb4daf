import { enableCompileCache } from 'node:module'

enableCompileCache()
const { startAll } = await import('./start-all.ts')
await startAll()
