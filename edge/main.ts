import { keepCode } from '../tasks/code-cache.ts'

keepCode()
const { runEdge } = await import('./run.ts')
await runEdge()
