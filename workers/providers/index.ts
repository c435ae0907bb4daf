import type { Providers } from '../../tasks/context.ts'
import { openPages } from './pages.ts'

/** The real outside. */
export const providers: Providers = { openPages }
