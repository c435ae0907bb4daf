import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import { type ClaimedJob, parseClaims } from '../../../sql/jobs/claims.ts'
import { claimForWorker, type WorkerClaimResult } from '../../../sql/worker-queues/claims.ts'
import { readQueueAccess } from '../../../sql/worker-queues/queues.ts'
import { answerCompactJson, route } from '../../pipeline/route.ts'
import { type QueueInput, requireManager, viewerOf } from './access.ts'
import { ClaimedJobs, formatClaim } from './claim-answer.ts'
import { endAttempts } from './ended.ts'
import { QueueParams, TASK_FIELDS, TaskName } from './shapes.ts'
import { checkSchemas, storeTasks } from './tasks.ts'

/** The route with which HTTP workers claim jobs. */

/** Scope of API keys that work for queues. */
export const WORK_SCOPE = 'worker-queues:work'

const DEFAULT_LEASE_SECONDS = 30

const Text = z.string().min(1).max(200)
const Worker = z.union([
  Text,
  z.strictObject({
    name: Text,
    host: Text.optional(),
    language: Text.optional(),
    version: Text.optional(),
  }),
])

const ClaimedTask = z.union([TaskName, z.strictObject({ name: TaskName, ...TASK_FIELDS })])

const ClaimRequest = z
  .strictObject({
    worker: Worker.describe('Name of the worker, or its name, host, language and version'),
    lease_id: z.uuid().toLowerCase().optional().describe('Default: a new lease'),
    lease_seconds: z.int().min(5).max(600).default(DEFAULT_LEASE_SECONDS),
    claim_id: z.uuid().toLowerCase().optional().describe('A repeated claim with this id gets the same jobs'),
    tasks: z
      .array(ClaimedTask)
      .min(1)
      .max(1000)
      .optional()
      .describe('Names or declarations; default: all tasks'),
    max: z.int().min(1).max(500).default(1),
    wait_seconds: z.number().min(0).max(30).default(0),
  })
  .meta({ id: 'WorkerClaim' })
type ClaimRequest = z.output<typeof ClaimRequest>

export const claimRoute = route({
  method: 'post',
  path: '/:name/claims',
  scope: WORK_SCOPE,
  allowsOrganizationKeys: true,
  summary: 'Claim jobs of a worker queue',
  description: `Waits up to \`wait_seconds\` for jobs, and answers with up to \`max\`. They run under the lease until they are reported, \
or the lease expires. Only for the account of the queue, and for admins and owners of its organization. Declarations in \`tasks\` \
replace those of the queue.`,
  params: QueueParams,
  body: ClaimRequest,
  bodyBytes: 4 * 2 ** 20,
  bodyValues: 200_000,
  response: ClaimedJobs,
  errors: [
    'worker_queue.missing',
    'worker_queue.pushed',
    'worker_task.limit',
    'lease.taken',
    'lease.limit',
    'lease.missing',
    'org.forbidden',
  ],
  whyRepeatable:
    'A claim with the same claim_id gets the same jobs; without one, unreported jobs run elsewhere later',
  handle: async (input) => {
    const { body } = input
    await declareGiven(input)
    const lease = body.lease_id ?? randomUUID()
    const { found, jobs } = await waitForJobs(input, lease)
    return answerCompactJson<z.input<typeof ClaimedJobs>>(formatClaim(lease, body.lease_seconds, found, jobs))
  },
})

type ClaimInput = QueueInput<z.input<typeof ClaimedJobs>, ClaimRequest>

/** Stores the declarations among the tasks of a claim. */
async function declareGiven(input: ClaimInput): Promise<void> {
  const { body, caller, edge, params } = input
  const declared = (body.tasks ?? []).flatMap((task, index) =>
    typeof task === 'string' ? [] : [{ task, index }],
  )
  if (declared.length === 0) return
  for (const { task, index } of declared) await checkSchemas(edge, caller, task, ['body', 'tasks', index])
  requireManager(await edge.reader.text(readQueueAccess, [...viewerOf(caller), params.name]))
  await edge.db.transaction((tx) =>
    storeTasks(
      tx,
      params.name,
      declared.map(({ task }) => task),
    ),
  )
}

/** Claims jobs as soon as there are any. Gives them back if the caller has left. */
async function waitForJobs(
  input: ClaimInput,
  lease: string,
): Promise<{ readonly found: WorkerClaimResult; readonly jobs: readonly ClaimedJob[] }> {
  const { body, caller, edge, exchange, params } = input
  const disconnected = new AbortController()
  exchange.responder.onClose(() => disconnected.abort())
  const { name, ...info } = typeof body.worker === 'string' ? { name: body.worker } : body.worker
  const tasks = body.tasks?.map((task) => (typeof task === 'string' ? task : task.name)) ?? null
  const claim = {
    queue: params.name,
    lease,
    claim: body.claim_id ?? null,
    name,
    info,
    leaseSeconds: body.lease_seconds,
    tasks,
    max: body.max,
  }
  const wait = { queue: params.name, tasks, waitMs: body.wait_seconds * 1000, signal: disconnected.signal }
  let hasWaited = false
  const { found } = await edge.claims.run(wait, async (leftMs) => {
    // Meanwhile, the key may have been revoked, or the account deactivated.
    const mayCreate = !hasWaited
    const viewer = viewerOf(hasWaited ? await edge.authenticator.renew(caller) : caller)
    hasWaited = true
    const waitSeconds = Math.ceil(leftMs / 1000)
    const { json: found } = await edge.db.one(claimForWorker({ ...claim, viewer, waitSeconds, mayCreate }))
    const isDone = found.outcome !== 'ok' || typeof found.claims === 'string'
    return { found, isDone, held: found.held ?? null, mustRepeat: found.must_repeat === true }
  })
  requireOutcome(found)
  const jobs = parseClaims({ claims: found.claims ?? null })
  for (const { id } of jobs) edge.publisher.notify(id)
  if (exchange.responder.isDone && claim.claim === null)
    await endAttempts(
      edge,
      jobs.map(({ id, attempt }) => ({ id, attempt, outcome: 'release' })),
    )
  return { found, jobs }
}

/**
 * @throws as {@link requireManager} does, fail('worker_queue.pushed'), fail('lease.taken'), fail('lease.missing'),
 * fail('lease.limit')
 */
function requireOutcome({ outcome }: WorkerClaimResult): void {
  if (outcome === 'missing') requireManager(null)
  if (outcome === 'forbidden') requireManager('use')
  if (outcome === 'pushed') throw fail('worker_queue.pushed')
  if (outcome === 'taken') throw fail('lease.taken')
  if (outcome === 'gone') throw fail('lease.missing')
  if (outcome === 'full') throw fail('lease.limit', { max: 10_000 })
}
