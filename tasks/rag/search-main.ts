/** Entry point of the search thread. */
import { enableCodeCache } from '../code-cache.ts'

enableCodeCache()
await import('./search-thread.ts')
