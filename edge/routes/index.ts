import type { Area } from '../pipeline/route.ts'
import { accounts } from './accounts/index.ts'
import { ai, aiCompletions, aiVersion } from './ai/index.ts'
import { batches } from './batches.ts'
import { blog } from './blog/index.ts'
import { comms } from './comms/index.ts'
import { documents } from './documents/index.ts'
import { jobs } from './jobs/index.ts'
import { llm } from './llm/index.ts'
import { createOperationsArea } from './operations.ts'
import { organizations } from './orgs/index.ts'
import { pages } from './pages.ts'
import { payments } from './payments/index.ts'
import { queues } from './queues/index.ts'
import { rag } from './rag/index.ts'
import { schedules } from './schedules/index.ts'
import { system } from './system/index.ts'
import { tasks } from './tasks.ts'
import { voice } from './voice/index.ts'
import { webhooks } from './webhooks/index.ts'
import { workerLeases, workerQueues } from './worker-queues/index.ts'
import { workers } from './workers.ts'

export const areas: readonly Area[] = [
  accounts,
  organizations,
  blog,
  documents,
  comms,
  jobs,
  batches,
  queues,
  workers,
  workerQueues,
  workerLeases,
  schedules,
  llm,
  tasks,
  payments,
  ai,
  aiVersion,
  aiCompletions,
  voice,
  rag,
  system,
  webhooks,
  pages,
  createOperationsArea(() => areas),
]
