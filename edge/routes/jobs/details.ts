import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import { MAX_AHEAD, readJobDetails } from '../../../sql/jobs/details.ts'
import { MAX_LINES } from '../../../sql/jobs/log.ts'
import { tasks } from '../../../tasks/index.ts'
import { MASK, masked } from '../../../tasks/masking.ts'
import type { JobLink, TaskDefinition } from '../../../tasks/task.ts'
import { route } from '../../pipeline/route.ts'
import { JobDetails, JobParams, visible } from './shapes.ts'

/** All that is known of one job, for its page. */

const PATHS: Readonly<Record<JobLink['kind'], string>> = {
  account: '/api/v1/auth/users',
  collection: '/rag/collections',
  conversation: '/api/v1/ai/conversations',
  document: '/monitor/documents',
  payment: '/api/v1/payment/transactions',
  post: '/api/v1/blog/posts',
  send: '/api/v1/comms/sends',
}

const byName = new Map(
  tasks.map((task) => [task.name, task as unknown as TaskDefinition<unknown, unknown>] as const),
)

/** Of a payload in an earlier form nothing is known. */
function linksOf(name: string, payload: unknown) {
  const task = byName.get(name)
  const parsed = task?.links && task.payload.safeParse(payload)
  if (!parsed?.success) return []
  return task!.links!(parsed.data).map(({ kind, id }) => ({
    kind,
    id: String(id),
    path: `${PATHS[kind]}/${encodeURIComponent(id)}`,
  }))
}

/** The answer to what PostgreSQL has built. */
function detailsOf(text: string): JobDetails {
  const found = JSON.parse(text) as Omit<JobDetails, 'links'>
  const { job, payload } = found
  const secrets = byName.get(job.name)?.secrets
  return {
    ...found,
    job: { ...job, result: masked(job.result, secrets) },
    payload: masked(payload, secrets),
    links: payload === null ? [] : linksOf(job.name, payload),
  }
}

export const detailRoutes = [
  route({
    method: 'get',
    path: '/:job_id/details',
    summary: 'Get all that is known of a job: attempts, payload, what it waits for, retries',
    description: `For those who may see the job. Only its owner and admins are given \`payload\`, \`links\`, \`mailbox\`, \
\`request_id\` and the names of workers; for others they are null or empty. Secrets of payload and result are \`${MASK}\`. \
\`attempts\` has the last 1000, oldest first. \`waited_seconds\` count from when an attempt was due until a worker claimed it; \
\`outcome\` is null while it runs, and \`retry\` (it failed and is tried again), \`release\` (its worker stopped, or the \
database was away) or \`interrupted\` (its process died) when the job waited again. \`waits_for\` is null unless the job waits: \
\`ahead\` counts the waiting jobs before it in its mailbox, up to ${MAX_AHEAD}; \`running\` are those that hold up a mailbox \
with a limit, as far as the caller may see them; \`queue\` says whether admins have paused its queue or limited it. \
\`log\` is for admins alone: the first ${MAX_LINES} lines that the logs of workers have about the job, a second or two later.`,
    params: JobParams,
    response: JobDetails,
    errors: ['job.missing'],
    handle: async ({ params, caller, edge, reader }) => {
      const text = isUuid(params.job_id)
        ? await reader.text(readJobDetails, visible(edge, caller, params.job_id))
        : null
      if (text === null) throw fail('job.missing')
      return detailsOf(text)
    },
  }),
]
