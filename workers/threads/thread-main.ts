/** The entry of a task thread. */
import { flushCompileCache } from 'node:module'
import { keepCode } from '../../tasks/code-cache.ts'

keepCode()
const { default: runJobs } = await import('./thread.ts')
// A thread that is killed writes nothing.
flushCompileCache()

export default runJobs
