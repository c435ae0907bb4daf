import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import { readJobOwnership } from '../../../sql/jobs/jobs.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { buildJobReadParameters } from './shapes.ts'

/**
 * Checks that the caller may change a job, and returns the parameters for reading it.
 *
 * @throws fail('job.missing'), fail('auth.forbidden') if the job has no owner.
 */
export async function requireOwnJob(edge: Edge, caller: Caller, jobId: string) {
  const parameters = buildJobReadParameters(edge, caller, jobId)
  const isOwn = isUuid(jobId) ? await edge.reader.text(readJobOwnership, parameters) : null
  if (isOwn === null) throw fail('job.missing')
  if (isOwn === 'false') throw fail('auth.forbidden', { roles: 'admin' })
  return parameters
}
