/** Entry point of a task thread. */
import { flushCompileCache } from 'node:module'
import { keepCode } from '../../tasks/code-cache.ts'

keepCode()
const { default: runJobs } = await import('./thread.ts')
// Flush now: a killed thread writes no cache at exit.
flushCompileCache()

export default runJobs
