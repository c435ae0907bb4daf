import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import { MAX_JOBS_AHEAD, MAX_LISTED_DEPENDENCIES, readJobDetails } from '../../../sql/jobs/details.ts'
import { MAX_LOG_LINES } from '../../../sql/jobs/log.ts'
import { tasks } from '../../../tasks/index.ts'
import type { JobLink, TaskDefinition } from '../../../tasks/task.ts'
import { isWorkerJob } from '../../../tasks/worker-queues/names.ts'
import { route } from '../../pipeline/route.ts'
import { MASK, maskSecrets } from './masking.ts'
import { buildJobReadParameters, JobDetails, JobParams } from './shapes.ts'

/** Adds masked secrets and links to the details of a job. */

const LINK_PATHS: Readonly<Record<JobLink['kind'], string>> = {
  account: '/api/v1/auth/users',
  collection: '/rag/collections',
  conversation: '/api/v1/ai/conversations',
  document: '/documents',
  payment: '/api/v1/payment/transactions',
  post: '/api/v1/blog/posts',
  send: '/api/v1/comms/sends',
}

const tasksByName = new Map(
  tasks.map((task) => [task.name, task as unknown as TaskDefinition<unknown, unknown>] as const),
)

/** Returns links to the resources that a payload names, or none if the task no longer accepts the payload. */
function findLinks(name: string, payload: unknown) {
  const task = tasksByName.get(name)
  const parsed = task?.links && task.payload.safeParse(payload)
  if (!parsed?.success) return []
  return task!.links!(parsed.data).map(({ kind, id }) => ({
    kind,
    id: String(id),
    path: `${LINK_PATHS[kind]}/${encodeURIComponent(id)}`,
  }))
}

/** Masks the secrets in JSON that PostgreSQL built, and adds the links. */
function parseDetails(text: string): JobDetails {
  const { secrets: declared, ...found } = JSON.parse(text) as Omit<JobDetails, 'links'> & {
    readonly secrets: readonly string[] | null
  }
  const { job, payload } = found
  const secrets = declared ?? tasksByName.get(job.name)?.secrets
  // The secrets are unknown now.
  const hidesAll = isWorkerJob(job.name) && declared === null
  return {
    ...found,
    job: { ...job, result: hidesAll ? hide(job.result) : maskSecrets(job.result, secrets) },
    payload: hidesAll ? hide(payload) : maskSecrets(payload, secrets),
    links: payload === null ? [] : findLinks(job.name, payload),
  }
}

const hide = (value: unknown): unknown => (value === null ? null : MASK)

export const detailRoutes = [
  route({
    method: 'get',
    path: '/:job_id/details',
    summary: 'Get the details of a job',
    description: `Has the attempts, the payload, the retries, and what the job waits for. Only its owner and admins \
get \`payload\`, \`links\`, \`mailbox\`, \`key\`, \`request_id\` and the names of workers; for other callers they are null or \
empty. Secrets in payload and result are replaced by \`${MASK}\`. \`attempts\` has the last 1000, oldest first. \
\`waited_seconds\` is the time from when an attempt was due until a worker claimed it. \`outcome\` is null while the \
attempt runs. If the job waited for another attempt, it is \`retry\` (this one failed), \`release\` (the worker \
stopped, or the database was unavailable) or \`interrupted\` (the process died). \`waits_for\` is null unless the job \
waits: \`ahead\` counts the queued jobs before it in its mailbox, up to ${MAX_JOBS_AHEAD}; \`running\` has the running \
jobs of a mailbox with a limit that the caller may see; \`queue\` has the pause and limit of its queue; \`jobs\` has up to \
${MAX_LISTED_DEPENDENCIES} jobs on which a waiting one still depends, or the members of a batch. \`log\` is \
only for admins: the first ${MAX_LOG_LINES} log lines of workers about the job, delayed by a second or two. The owner of a job of a \
worker queue gets the lines that its worker has reported.`,
    params: JobParams,
    response: JobDetails,
    errors: ['job.missing'],
    handle: async ({ params, caller, edge, reader }) => {
      const text = isUuid(params.job_id)
        ? await reader.text(readJobDetails, buildJobReadParameters(edge, caller, params.job_id))
        : null
      if (text === null) throw fail('job.missing')
      return parseDetails(text)
    },
  }),
]
