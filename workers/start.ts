import { keepCode } from '../tasks/code-cache.ts'

keepCode()
const { startAll } = await import('./start-all.ts')
await startAll()
