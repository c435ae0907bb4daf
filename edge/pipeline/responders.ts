import { readWithin, type Transaction } from '../../sql/db.ts'
import { type Failure, fail, storedFailure } from '../../sql/errors.ts'
import { type Claim, keepKey } from '../../sql/idempotency.ts'
import { enqueueJobs, type JobSpec } from '../../sql/jobs.ts'
import { addCallback, type Callback } from '../../sql/webhooks.ts'
import type { JobRef } from '../../tasks/task.ts'
import { failureBody, type Header, type KeptAnswer } from '../http/reply.ts'
import type { JobEvent } from '../streams/job-event.ts'
import type { Place } from '../streams/places.ts'
import { SSE_HEADERS, type StreamSource } from '../streams/sse.ts'
import { checked, completed, sendAnswer, textOf } from './answers.ts'
import { callbackOf } from './callbacks.ts'
import { type Ending, keyOf } from './ending.ts'
import {
  fingerprintOf,
  type KeyRef,
  keepAnswer,
  keptAnswer,
  REPLAYED,
  replayed,
  takeKey,
} from './idempotency.ts'
import { wantsBackground } from './input.ts'
import type { Entry } from './match.ts'
import type { RequestContext } from './request-context.ts'
import type { Received, TaskInput } from './route.ts'
import { statusOf } from './statuses.ts'
import { RequestWrites } from './writes.ts'

// A repeated request waits only long enough to read the first one's job.
const REPEAT_WAIT_MS = 100

export async function respondWithHandle(ending: Ending): Promise<void> {
  const { edge, exchange, entry, input } = ending
  const { handle, method } = entry.route
  const key = keyOf(exchange, entry)
  const writes = method === 'get' ? null : new RequestWrites(ending, key)
  const given = writes === null ? input : (writes.inputOf(input) as never)
  const answer = checked(edge, entry, await handle!(given))
  if (key !== null && writes?.wrote !== true)
    throw new TypeError(`${method} ${entry.pattern} has a side effect outside of its transaction`)
  return sendAnswer(exchange, completed(edge, entry, answer))
}

export async function respondWithJob(ending: Ending): Promise<void> {
  const { exchange, entry, input } = ending
  const { follow } = entry.route
  // A HEAD request has no effect, even where GET would.
  if (exchange.request.method === 'HEAD') return exchange.empty(200, follow === undefined ? [] : SSE_HEADERS)
  const { confirmed } = ending.edge
  const resumed = follow ? await confirmed.covering(() => follow.resume(input)) : null
  if (resumed !== null) return withPlace(ending, (place) => openStream(ending, resumed, place))
  const background = entry.route.alwaysWaits !== true && wantsBackground(exchange.request)
  if (follow === undefined || background) return runJob(ending, background, null)
  // Reserve the stream before adding the job, so that a refused stream adds no job.
  return withPlace(ending, (place) => runJob(ending, background, place))
}

async function runJob(ending: Ending, background: boolean, place: Place | null): Promise<void> {
  const { edge, exchange, entry, input } = ending
  const { follow } = entry.route
  const key = keyOf(exchange, entry)
  const callback = callbackOf(ending, background)
  const received = await entry.route.receive?.(input)
  const begun = await beginJob(ending, { key, background, callback, received }).catch(async (error) => {
    await received?.discard()
    throw error
  })
  if ('first' in begun) await received?.discard()
  if ('first' in begun) return repeatJob(ending, key!, begun.first, place)
  const { jobId, atOnce } = begun
  if (place !== null) return openStream(ending, await follow!.open(input, jobId), place)
  const answer = atOnce ?? (await waitForJob(ending, jobId))
  // After a disconnect the answer may be incomplete; a repetition reads the job instead.
  if (key !== null && atOnce === null && !exchange.responder.done) await keepAnswer(edge, key, answer)
  await exchange.kept(answer)
}

/** Options of a new job. */
interface Beginning {
  readonly key: KeyRef | null
  readonly background: boolean
  readonly callback: Callback | null
  readonly received: Received | undefined
}

interface Begun {
  readonly jobId: string
  /** The answer if the caller does not wait for the job; otherwise null. */
  readonly atOnce: KeptAnswer | null
}

/** Adds the job, or finds the first request under the same key. */
async function beginJob(
  ending: Ending,
  { key, background, callback, received }: Beginning,
): Promise<{ first: Claim } | Begun> {
  const { edge, entry } = ending
  if (received !== undefined) await ending.readmit()
  if (entry.route.task !== undefined && key === null && callback === null) {
    const jobId = await addTogether(ending)
    return { jobId, atOnce: background ? accepted(jobId) : null }
  }
  return edge.db.transaction(async (tx) => {
    const used = key === null ? null : { ...key, fingerprint: fingerprintFor(ending, received) }
    const first = used === null ? null : await takeKey(tx, used)
    if (first !== null) return { first }
    const { jobId, answer } = await addWithin(tx, ending, received)
    const atOnce = background ? accepted(jobId) : answer === undefined ? null : givenAnswer(ending, answer)
    if (callback !== null) await tx.run(addCallback(jobId, callback))
    if (used !== null) await tx.run(keepKey(used, { jobId, ...(atOnce === null ? {} : { answer: atOnce }) }))
    tx.afterCommit(() => edge.publisher.notify(jobId, 'later'))
    return { jobId, atOnce }
  })
}

/** The answer that a route gives before its job ends. */
function givenAnswer({ edge, entry }: Ending, value: unknown): KeptAnswer {
  const answer = checked(edge, entry, value)
  return { status: answer.status ?? 200, headers: answer.headers, body: textOf(answer) }
}

/** Fingerprint of the request, with `received` in place of the body. */
function fingerprintFor({ edge, exchange, fingerprint }: Ending, received: Received | undefined): Buffer {
  if (received === undefined) return fingerprint()
  const { method, path, query } = exchange.request
  return fingerprintOf(edge.secretKey, method, path, query, received.fingerprint)
}

async function addWithin(
  tx: Transaction,
  ending: Ending,
  received: Received | undefined,
): Promise<Pick<JobRef<unknown>, 'jobId' | 'answer'>> {
  const { job } = ending.entry.route
  const { caller } = ending.exchange
  if (job !== undefined) return job({ ...(ending.input as object), caller, tx, received } as never)
  const spec = await specOf(ending, (statement, values) => readWithin(tx, statement, values))
  return { jobId: (await tx.one(enqueueJobs([spec], ending.edge.settings.quotas.waiting_jobs))).job_id }
}

/** Adds the job in a statement shared with other requests. */
async function addTogether(ending: Ending): Promise<string> {
  const { enqueuer, reader } = ending.edge
  const [added] = await enqueuer.add([await specOf(ending, reader.text)])
  return added!.job_id
}

async function specOf({ edge, entry, exchange, input }: Ending, read: TaskInput['read']): Promise<JobSpec> {
  const job = await entry.route.task!({ ...(input as object), read } as never)
  return job.spec({
    ownerId: exchange.caller?.ownerId ?? null,
    requestId: exchange.requestId,
    settings: edge.settings,
  })
}

export async function respondWithStream(ending: Ending): Promise<void> {
  await withPlace(ending, async (place) => {
    const { edge, entry, input } = ending
    const source = await edge.confirmed.covering(() => entry.route.stream!(input))
    return openStream(ending, source, place)
  })
}

/** Reserves a stream, runs the work, and releases the reservation if the work opened no stream. */
async function withPlace(ending: Ending, work: (place: Place) => Promise<void> | void): Promise<void> {
  const { caller, address } = ending.exchange
  const place = ending.streams.place({ accountId: caller?.ownerId ?? null, address })
  try {
    await work(place)
  } finally {
    if (!place.taken) place.giveUp()
  }
}

function openStream(
  { edge, exchange, streams }: Ending,
  source: StreamSource,
  place: Place,
  headers: readonly Header[] = [],
): Promise<void> | void {
  // 204 stops a reconnecting EventSource: all events were delivered.
  if (source === 'ended') return exchange.empty(204)
  const head = exchange.head(200, [...SSE_HEADERS, ...headers])
  if (exchange.request.method === 'HEAD') return exchange.responder.send({ ...head, head: true })
  const { caller } = exchange
  const subscriber = {
    accountId: caller?.ownerId ?? null,
    isAuthorized: async () => caller === null || edge.accounts.isStillAuthorized(caller),
    beforeSending: () => exchange.written?.remember(),
  }
  streams.open(exchange.responder, head, source, subscriber, place)
}

export async function respondWithRaw(ending: Ending): Promise<void> {
  const { entry, exchange, input } = ending
  const raw = {
    ...new RequestWrites(ending, keyOf(exchange, entry)).inputOf(input),
    responder: exchange.responder,
    head: (status: number, headers: Parameters<RequestContext['head']>[1]) => exchange.head(status, headers),
  }
  const answer = await entry.route.raw!(raw as never)
  if (answer !== undefined) await sendAnswer(exchange, answer)
}

async function waitForJob({ edge, entry, exchange }: Ending, jobId: string): Promise<KeptAnswer> {
  const gone = new AbortController()
  exchange.responder.onClose(() => gone.abort())
  const event = await edge.hub.terminal(jobId, edge.settings.requestWaitSeconds * 1000, gone.signal)
  return event === null ? accepted(jobId) : jobAnswer(entry, event)
}

async function repeatJob(ending: Ending, key: KeyRef, first: Claim, place: Place | null): Promise<void> {
  const { edge, entry, exchange, input } = ending
  const { follow } = entry.route
  if (place !== null && first.status === null && first.job_id !== null)
    return openStream(ending, await follow!.open(input, first.job_id), place, [REPLAYED])
  // If the first request's process died, the job has the answer.
  const event =
    first.status === null && first.job_id !== null
      ? await edge.hub.terminal(first.job_id, REPEAT_WAIT_MS)
      : null
  const answer = event === null ? keptAnswer(first) : jobAnswer(entry, event)
  if (event !== null) await keepAnswer(edge, key, answer)
  await exchange.kept(replayed(answer))
}

function accepted(jobId: string): KeptAnswer {
  return {
    status: 202,
    headers: [['location', `/api/v1/jobs/${jobId}`]],
    body: JSON.stringify({ job_id: jobId }),
  }
}

/** The answer for a caller who waits for a job. */
function jobAnswer({ route }: Entry, event: JobEvent): KeptAnswer {
  if (event.status === 'done') {
    const { result = null } = JSON.parse(event.frame) as { result?: unknown }
    return { status: 200, headers: [], body: JSON.stringify(route.answer?.(result) ?? result) }
  }
  const failure = jobFailure(event)
  return { status: statusOf(failure.code), headers: [], body: failureBody(failure) }
}

/** The failure of a job that did not complete. */
export function jobFailure(event: JobEvent): Failure {
  const { error } = JSON.parse(event.frame) as { error?: { code: string; detail: string } }
  return event.status === 'cancelled' || error === undefined ? fail('job.cancelled') : storedFailure(error)
}
