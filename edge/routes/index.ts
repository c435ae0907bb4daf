import type { Area } from '../route.ts'
import { accounts } from './accounts.ts'
import { documents } from './documents.ts'
import { jobs } from './jobs.ts'
import { operations } from './operations.ts'
import { pages } from './pages.ts'

/** Every area, one line each. */
export const areas: readonly Area[] = [accounts, documents, jobs, pages, operations(() => areas)]
