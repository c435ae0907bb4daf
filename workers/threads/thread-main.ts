/** Entry point of a task thread. */
import { flushCompileCache } from 'node:module'
import { enableCodeCache } from '../../tasks/platform/code-cache.ts'

enableCodeCache()
const { default: runJobs } = await import('./thread.ts')
// Flush now: a killed thread writes no cache at exit.
flushCompileCache()

export default runJobs
