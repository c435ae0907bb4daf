import { RequestError } from '../../client/connection.ts'
import { defineCommand, type Input } from '../command.ts'
import { statusOf } from '../failure.ts'
import { STATUS } from '../io.ts'
import { awaitJob, type Job } from '../jobs.ts'
import { clean } from '../output.ts'

/** Commands that change jobs. */

export const retry = defineCommand({
  args: 'JOB…',
  about: 'Adds a new job for each failed one, and writes the id of each new job.',
  options: { wait: { about: 'show the progress and result of each new job' } },
  example: 'retry 01a20118-fbcc-738c-80ed-00058e0e401d --wait',
  scopes: ['jobs:write'],
  run: (input) =>
    forEachJob(input, async (id) => {
      const job = await input.api.call<Job>('POST', `/api/v1/jobs/${encodeURIComponent(id)}/retry`)
      if (input.values.wait) return awaitJob(input, job.job_id, clean(job.name))
      if (input.out.isJson) input.out.json(job)
      else input.out.line(job.job_id)
      return STATUS.done
    }),
})

export const cancel = defineCommand({
  args: 'JOB…',
  about: 'Cancels jobs. A running job is asked to stop, and killed if it does not.',
  options: {},
  example: 'cancel 01a20118-fbcc-738c-80ed-00058e0e401d',
  scopes: ['jobs:write'],
  run: (input) =>
    forEachJob(input, async (id) => {
      const job = await input.api.call<Job>('DELETE', `/api/v1/jobs/${encodeURIComponent(id)}`)
      if (input.out.isJson) input.out.json(job)
      else input.out.line(`${job.job_id}  ${job.status}`)
      return STATUS.done
    }),
})

/** Runs an action for each job. A refusal of one does not stop the others. Returns the highest exit status. */
async function forEachJob(input: Input, run: (id: string) => Promise<number>): Promise<number> {
  let highest: number = STATUS.done
  for (const id of input.args) {
    try {
      highest = Math.max(highest, await run(id))
    } catch (error) {
      if (input.args.length === 1 || !(error instanceof RequestError) || error.response.status === 401)
        throw error
      input.out.note(clean(`${id}: ${error.message}`))
      highest = Math.max(highest, statusOf(error))
    }
  }
  return highest
}
