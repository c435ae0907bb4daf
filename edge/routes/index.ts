import type { Area } from '../pipeline/route.ts'
import { accounts } from './accounts.ts'
import { ai, aiVersion } from './ai.ts'
import { blog } from './blog.ts'
import { comms } from './comms.ts'
import { documents } from './documents.ts'
import { jobs } from './jobs.ts'
import { llm } from './llm.ts'
import { createOperationsArea } from './operations.ts'
import { organizations } from './orgs.ts'
import { pages } from './pages.ts'
import { payments } from './payments.ts'
import { queues } from './queues.ts'
import { rag } from './rag.ts'
import { schedules } from './schedules.ts'
import { system } from './system.ts'
import { tasks } from './tasks.ts'
import { voice } from './voice.ts'
import { webhooks } from './webhooks.ts'
import { workers } from './workers.ts'

export const areas: readonly Area[] = [
  accounts,
  organizations,
  blog,
  documents,
  comms,
  jobs,
  queues,
  workers,
  schedules,
  llm,
  tasks,
  payments,
  ai,
  aiVersion,
  voice,
  rag,
  system,
  webhooks,
  pages,
  createOperationsArea(() => areas),
]
