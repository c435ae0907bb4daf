import { z } from 'zod'
import type { Transaction } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import { isUuid } from '../../sql/ids.ts'
import { readBatchOwner } from '../../sql/jobs/batches.ts'
import { type JobSpec, MAX_DEPENDENCIES } from '../../sql/jobs/jobs.ts'
import { buildJobSpecs } from '../../tasks/task.ts'
import type { Caller } from '../pipeline/access/auth.ts'
import type { Edge } from '../pipeline/context.ts'
import { failInvalidField, failInvalidInput } from '../pipeline/request/input.ts'
import { requireVisibleJobs } from '../pipeline/write/job-links.ts'
import { findDeclaredTasks } from './declared-tasks.ts'
import { buildOptions, checkJob, checkTerms, JOB_REQUEST_FIELDS } from './job-requests.ts'
import { buildJobReadParameters, isAdmin } from './jobs/shapes.ts'

/** The jobs of a batch: their checks, and their addition. */

const MAX_KEYS = 1000
const MAX_JOINING_JOBS = 1000
export const MAX_LINKS = 100_000

export const BatchJob = z
  .strictObject({
    ...JOB_REQUEST_FIELDS,
    after: z
      .array(z.union([z.int().min(0), z.uuid().toLowerCase()]))
      .min(1)
      .max(MAX_DEPENDENCIES)
      .optional()
      .describe('Jobs that must end first: indexes of earlier jobs of this request, or ids of jobs'),
    after_outcome: z
      .enum(['done', 'any'])
      .optional()
      .describe('`done`, the default, cancels the job if one of them does not succeed; `any` runs it'),
  })
  .superRefine(checkTerms)
  .meta({ id: 'BatchJob' })
type BatchJob = z.output<typeof BatchJob>

/** A batch and the account that owns it and its jobs. */
export interface OwnedBatch {
  readonly id: string
  readonly ownerId: number | null
}

/** Returns the batch. @throws fail('batch.missing') unless the caller may see it. */
export async function requireBatch(edge: Edge, caller: Caller, id: string): Promise<OwnedBatch> {
  const owner = isUuid(id)
    ? await edge.reader.text(readBatchOwner, buildJobReadParameters(edge, caller, id))
    : null
  if (owner === null) throw fail('batch.missing')
  return { id, ownerId: owner === '' ? null : Number(owner) }
}

/** Returns the batch. @throws fail('batch.missing'), or fail('auth.forbidden') unless the caller may change it. */
export async function requireOwnBatch(edge: Edge, caller: Caller, id: string): Promise<OwnedBatch> {
  const batch = await requireBatch(edge, caller, id)
  if (!isAdmin(caller) && (batch.ownerId === null || batch.ownerId !== caller.ownerId))
    throw fail('auth.forbidden', { roles: 'admin' })
  return batch
}

interface Requester {
  readonly edge: Edge
  readonly caller: Caller
  readonly requestId: string
}

/** Returns the jobs of a request. @throws as {@link checkJob} does, and fail('request.invalid') for wrong dependencies. */
export async function buildMembers(
  input: Requester,
  batch: OwnedBatch,
  jobs: readonly BatchJob[],
): Promise<readonly JobSpec[]> {
  const named = jobs.map((job, index) => ({ ...job, path: ['jobs', index] }))
  const declared = await findDeclaredTasks(input.edge, input.caller, named)
  const specs: JobSpec[] = []
  for (const [index, { after, after_outcome: afterOutcome, ...request }] of jobs.entries()) {
    const job = checkJob(input.edge, input.caller, request, declared, ['jobs', index])
    const ids = after && [...new Set(after)].map((item) => findDependency(item, index, specs))
    const terms = { batchId: batch.id, ...(ids && { after: ids, afterOutcome }) }
    specs.push(buildJobSpecs(job.task, [job.payload], buildOptions(input, job, terms, batch.ownerId))[0]!)
  }
  checkTotals(specs)
  return specs
}

function checkTotals(specs: readonly JobSpec[]): void {
  // A transaction locks the mailbox of each key.
  const keys = new Set(specs.flatMap(({ key, mailbox }) => (key === undefined ? [] : [mailbox]))).size
  const links = specs.reduce((sum, { after = [] }) => sum + after.length, 0)
  // Each looks for a job to join.
  const joining = specs.filter(({ when_busy }) => when_busy !== 'wait').length
  for (const [count, max, what] of [
    [keys, MAX_KEYS, 'different keys'],
    [links, MAX_LINKS, 'dependencies'],
    [joining, MAX_JOINING_JOBS, 'jobs with when_busy'],
  ] as const)
    if (count > max)
      throw failInvalidField('body', 'jobs', `must not have more than ${max} ${what}`, 'too_big')
}

/** Returns the id of a dependency. An index must be that of an earlier job that joins no other. */
function findDependency(item: number | string, index: number, specs: readonly JobSpec[]): string {
  if (typeof item === 'string') return item
  const refuse = (msg: string) =>
    failInvalidInput([{ loc: ['body', 'jobs', index, 'after'], msg, type: 'custom' }])
  if (item >= index) throw refuse('must name earlier jobs')
  if (specs[item]!.when_busy !== 'wait') throw refuse('must name jobs that do not join others')
  return specs[item]!.id
}

/** Adds jobs, and returns their ids. @throws fail('job.missing') if the caller cannot see a dependency. */
export async function addJobs(
  tx: Transaction,
  { edge, caller }: Requester,
  specs: readonly JobSpec[],
): Promise<readonly string[]> {
  const own = new Set(specs.map(({ id }) => id))
  const others = new Set(specs.flatMap(({ after = [] }) => after.filter((id) => !own.has(id))))
  if (others.size > 0) await requireVisibleJobs(tx, edge, caller, [...others])
  return (await edge.enqueuer.add(specs, tx)).map(({ job_id }) => job_id)
}
