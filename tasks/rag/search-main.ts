/** The entry of the thread that searches. */
import { keepCode } from '../code-cache.ts'

keepCode()
await import('./search-thread.ts')
