import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import { changeJob, readJob } from '../../../sql/jobs/jobs.ts'
import { findNamedTask } from '../../../tasks/load-test/index.ts'
import { isWorkerJob, parseJobName } from '../../../tasks/worker-queues/names.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { parseAt } from '../../pipeline/request/input.ts'
import { Moment } from '../../pipeline/request/schemas.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { findDeclaredTasks } from '../declared-tasks.ts'
import { checkRunAt, DelaySeconds } from '../job-requests.ts'
import { requireOwnJob } from './ownership.ts'
import { Job, JobParams } from './shapes.ts'

const JobChange = z
  .strictObject({
    args: z.record(z.string(), z.unknown()).optional().describe('The new arguments, all of them'),
    run_at: Moment.optional().describe('Earliest start, at most 30 days ahead'),
    delay_seconds: DelaySeconds.optional().describe('Earliest start from now on, instead of `run_at`'),
  })
  .refine(({ args, run_at, delay_seconds }) => (args ?? run_at ?? delay_seconds) !== undefined, {
    message: 'needs args, run_at or delay_seconds',
  })
  .refine(({ run_at, delay_seconds }) => run_at === undefined || delay_seconds === undefined, {
    message: 'excludes delay_seconds',
    path: ['run_at'],
  })
  .meta({ id: 'JobChange' })

/** Returns the valid arguments of a job's task, or null. @throws fail('job.not_changeable'), fail('request.invalid') */
async function parseArgs(
  edge: Edge,
  caller: Caller,
  { name, queue }: { readonly name: string; readonly queue: string },
  args: unknown,
): Promise<unknown> {
  if (isWorkerJob(name)) {
    const task_name = parseJobName(name).task
    if (args !== undefined)
      await findDeclaredTasks(edge, caller, [{ queue_type: queue, task_name, args, path: [] }])
    return args ?? null
  }
  const task = findNamedTask(name, queue)
  if (task === null) throw fail('job.not_changeable')
  return args === undefined ? null : parseAt(task.payload, args, ['body', 'args'])
}

/** The route that changes a job before its start. */
export const changeRoutes = [
  route({
    method: 'patch',
    path: '/:job_id',
    summary: 'Change a job that has never started',
    description:
      'Changes the arguments or the time of a task that was added at `/api/v1/tasks`. Only for the owner of the job and admins.',
    params: JobParams,
    body: JobChange,
    response: Job,
    errors: ['job.missing', 'auth.forbidden', 'job.not_changeable', 'job.started'],
    handle: async ({ params: { job_id: id }, body, caller, edge }) => {
      const parameters = await requireOwnJob(edge, caller, id)
      const found = await edge.reader.text(readJob, parameters)
      if (found === null) throw fail('job.missing')
      const payload = await parseArgs(edge, caller, JSON.parse(found), body.args)
      checkRunAt(edge, body.run_at)
      const { run_at: runAt = null, delay_seconds: delaySeconds = null } = body
      const changed = await edge.db.maybeOne(changeJob(id, { payload, runAt, delaySeconds }))
      if (changed === null) throw fail('job.started')
      edge.publisher.notify(id)
      const text = await edge.reader.text(readJob, parameters)
      if (text === null) throw fail('job.missing')
      return answerJson(text)
    },
  }),
]
