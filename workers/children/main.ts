/** Entry point of a child process. */
import { enableCodeCache } from '../../tasks/platform/code-cache.ts'

enableCodeCache()
await import('./all-work.ts')
