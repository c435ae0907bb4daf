import { keepCode } from '../tasks/code-cache.ts'

keepCode()
const { startAll } = await import('./processes/start-all.ts')
await startAll(process.argv.slice(2))
