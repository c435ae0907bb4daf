/** Entry point of a child process. */
import { keepCode } from '../../tasks/code-cache.ts'

keepCode()
await import('./all-work.ts')
