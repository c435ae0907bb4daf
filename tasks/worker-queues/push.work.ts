import { randomUUID } from 'node:crypto'
import { type Failure, fail } from '../../sql/errors.ts'
import { deleteLease } from '../../sql/jobs/leases.ts'
import { findPushTarget, handOver, insertPushLease, type PushTarget } from '../../sql/worker-queues/push.ts'
import type { TaskContext } from '../context.ts'
import { DEFAULT_TIMEOUT_SECONDS } from '../task.ts'
import type { PostedAnswer } from '../webhooks/ports.ts'
import { signWebhook } from '../webhooks/signature.ts'
import { MAX_PUSH_SECONDS, sealUseOf } from './endpoint.ts'
import { parseJobName } from './names.ts'
import { getSchemaChecker } from './schema-checker.ts'

const MAX_RESULT_BYTES = 2 ** 20
// Time in which an endpoint that goes on after its answer must report something.
const LEASE_SECONDS = 600
const RETRY_MS = 5_000

type Context = Pick<TaskContext, 'db' | 'job' | 'keys' | 'providers' | 'signal'>

/** Runs a job of a worker queue: sends it to the endpoint, and returns the result that this answers. */
export async function run(ctx: Context, args: Readonly<Record<string, unknown>>): Promise<unknown> {
  const { db, job } = ctx
  const { queue, task } = parseJobName(job.name)
  const target = await db.maybeOne(findPushTarget(queue, task, job.id))
  if (target === null)
    throw failEndpoint('the queue has none now', { retry: 'free', retryAfter: RETRY_MS / 1000 })
  const lease = randomUUID()
  // Before the request, because the endpoint may report before its answer arrives.
  await db.run(insertPushLease(lease, queue, new URL(target.url).host, LEASE_SECONDS))
  let isHandedOver = false
  try {
    const answer = await post(ctx, target, lease, args)
    isHandedOver = answer.status === 202
    if (!isHandedOver) return await readResult(target, answer, job.ownerId)
    await db.maybeOne(handOver(job.id, job.attempt, lease, LEASE_SECONDS))
  } finally {
    if (!isHandedOver) await db.run(deleteLease(lease))
  }
  // The attempt goes on under the lease of the endpoint, or has ended by its report.
  throw fail('job.superseded')
}

async function post(
  { job, keys, providers, signal }: Context,
  target: PushTarget,
  lease: string,
  args: Readonly<Record<string, unknown>>,
): Promise<PostedAnswer> {
  const { queue, task } = parseJobName(job.name)
  const secret = keys.unseal(sealUseOf(queue), target.secret)
  if (secret === null)
    throw failEndpoint('its secret cannot be decrypted; set the endpoint again', { retry: 'never' })
  const seconds = Math.min(target.timeout_seconds ?? MAX_PUSH_SECONDS, MAX_PUSH_SECONDS)
  const body = JSON.stringify({
    job_id: job.id,
    queue,
    task,
    args,
    attempt: job.attempt,
    tries: target.tries,
    max_tries: target.max_tries,
    deadline: new Date(
      target.now_ms + (target.timeout_seconds ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
    ).toISOString(),
    dependencies: target.dependencies ?? [],
    traceparent: target.traceparent,
    lease_id: lease,
    lease_seconds: LEASE_SECONDS,
  })
  const id = `${job.id}.${job.attempt}`
  const headers = signWebhook({ id, timestamp: Math.floor(target.now_ms / 1000), body }, [secret])
  const limits = { timeoutMs: seconds * 1000, maxBytes: MAX_RESULT_BYTES }
  return providers.postWebhook({ url: target.url, headers, body, echo: null, limits }, signal)
}

/** Returns the result of an answer. @throws fail('worker_job.endpoint_failed'), fail('worker_job.result_invalid') */
async function readResult(
  { result: schema }: PushTarget,
  { status, body, error, retry_after, isWhole }: PostedAnswer,
  owner: number | null,
): Promise<unknown> {
  if (status === 429 || status === 503)
    throw failEndpoint(`it answered ${status}`, { retry: 'free', retryAfter: retry_after ?? RETRY_MS / 1000 })
  if (status !== 200) throw failEndpoint(status === null ? (error ?? 'no answer') : `it answered ${status}`)
  if (isWhole !== true) throw failEndpoint('its answer broke off or has more than 1 MiB')
  const text = body ?? ''
  let result: unknown = null
  try {
    if (text.trim() !== '') result = JSON.parse(text)
  } catch {
    throw failEndpoint('its answer is not JSON')
  }
  if ((schema ?? null) === null) return result
  const [problem] = await getSchemaChecker().check(owner ?? 0, schema, [JSON.stringify(result)])
  if (problem !== null)
    throw fail('worker_job.result_invalid', {
      reason: `${problem!.path.join('.')} ${problem!.message}`.trim(),
    })
  return result
}

function failEndpoint(
  reason: string,
  options: { readonly retry?: 'never' | 'free'; readonly retryAfter?: number } = {},
): Failure {
  return fail('worker_job.endpoint_failed', { reason }, options)
}
