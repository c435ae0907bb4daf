import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { isUuid } from '../../sql/ids.ts'
import { setWorkerDrained } from '../../sql/jobs/queues.ts'
import type { Caller } from '../pipeline/access/auth.ts'
import { type Answer, area, type Input, route, type Writes } from '../pipeline/route.ts'
import { appendAuditEvent } from '../pipeline/write/audit.ts'

/** Routes for workers. A worker's id is the id of its lease. */

const Params = z.object({ worker_id: z.string() })
const DrainedWorker = z
  .strictObject({ id: z.uuid(), name: z.string(), drained: z.boolean() })
  .meta({ id: 'DrainedWorker' })

type DrainedWorkerJson = z.input<typeof DrainedWorker>
type WorkerInput = Input<z.output<typeof Params>, unknown, undefined, Caller> & Writes<DrainedWorkerJson>

const sharedOptions = {
  method: 'post',
  params: Params,
  response: DrainedWorker,
  errors: ['worker.missing'],
  sideEffect: true,
} as const

export const workers = area('workers', '/api/v1/workers', { auth: 'admin' }, [
  route({
    ...sharedOptions,
    path: '/:worker_id/drain',
    summary: 'Drain a worker',
    description:
      'It starts no more jobs until it is resumed or loses its lease; running jobs continue. Other workers take over its share immediately. Drain a worker before stopping it, for example.',
    handle: (input) => setDrained(input, true),
  }),
  route({
    ...sharedOptions,
    path: '/:worker_id/resume',
    summary: 'Resume a drained worker',
    handle: (input) => setDrained(input, false),
  }),
])

async function setDrained(
  input: WorkerInput,
  drained: boolean,
): Promise<Answer<DrainedWorkerJson> | DrainedWorkerJson> {
  const { worker_id: id } = input.params
  return input.transaction(async (tx) => {
    const row = isUuid(id) ? await tx.maybeOne(setWorkerDrained(id, drained)) : null
    if (row === null) throw fail('worker.missing')
    const kind = drained ? 'worker.drained' : 'worker.resumed'
    await tx.run(appendAuditEvent(input, kind, { data: { worker: row.name } }))
    return { id, name: row.name, drained }
  })
}
