/** Entry point of the search thread. */
import { enableCodeCache } from '../platform/code-cache.ts'

enableCodeCache()
await import('./search-thread.ts')
