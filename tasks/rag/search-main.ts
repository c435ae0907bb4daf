/** The entry point of the search thread. */
import { keepCode } from '../code-cache.ts'

keepCode()
await import('./search-thread.ts')
