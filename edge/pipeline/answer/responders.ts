import { readWithin, type Transaction } from '../../../sql/db.ts'
import { type Failure, fail, restoreFailure } from '../../../sql/errors.ts'
import { type Claim, storeKey } from '../../../sql/idempotency/idempotency.ts'
import { enqueueJobs, type JobSpec } from '../../../sql/jobs/jobs.ts'
import type { JobRef } from '../../../tasks/task.ts'
import type { Header, StoredReply } from '../../http/reply.ts'
import type { JobEvent } from '../../streams/job-event.ts'
import { SSE_HEADERS, type StreamSource } from '../../streams/sse.ts'
import type { StreamPermit } from '../../streams/stream-permits.ts'
import type { Edge } from '../context.ts'
import { type AdmittedRequest, readIdempotencyKey } from '../request/admitted-request.ts'
import { wantsBackground } from '../request/input.ts'
import type { RouteEntry } from '../request/match.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Follow, ReceivedBody, TaskInput } from '../route.ts'
import {
  answerFailure,
  claimIdempotencyKey,
  computeFingerprint,
  type KeyRef,
  markReplayed,
  REPLAYED_HEADER,
  requireStoredAnswer,
  storeJobAnswer,
} from '../write/idempotency.ts'
import { type JobLinks, linkJob, parseJobLinks } from '../write/job-links.ts'
import { bodyOf, completeAnswer, RequestWrites, sendAnswer, toCheckedAnswer } from '../write/writes.ts'
import { checkRefusal } from './refusals.ts'

// A repeated request waits only long enough to read the job of the first one.
const REPEAT_WAIT_MS = 100

export async function respondWithHandle(admitted: AdmittedRequest): Promise<void> {
  const { edge, exchange, entry, input } = admitted
  const { handle, method } = entry.route
  const key = readIdempotencyKey(exchange, entry)
  const writes = method === 'get' ? null : new RequestWrites(admitted, key)
  const given = writes === null ? input : (writes.extendInput(input) as never)
  const answer = toCheckedAnswer(edge, entry, await handle!(given))
  if (key !== null && writes?.hasUsedKey !== true)
    throw new TypeError(`${method} ${entry.pattern} has a side effect outside of its transaction`)
  return sendAnswer(exchange, completeAnswer(edge, entry, answer))
}

export async function respondWithJob(admitted: AdmittedRequest): Promise<void> {
  const { exchange, entry, input } = admitted
  const follow = findFollow(admitted)
  // A HEAD request must have no effect, even if GET would.
  if (exchange.request.method === 'HEAD')
    return exchange.sendEmpty(200, follow === undefined ? [] : SSE_HEADERS)
  const resumed = await follow?.resume?.(input)
  if (resumed) return withStreamSlot(admitted, (slot) => openStream(admitted, resumed, slot))
  const background = entry.route.alwaysWaits !== true && wantsBackground(exchange.request)
  if (follow === undefined || background) return runJob(admitted, background, null)
  // The stream slot is reserved before the job is added, so that a refused stream adds no job.
  return withStreamSlot(admitted, (slot) => runJob(admitted, background, slot))
}

/** Returns how the request follows its job as a stream; undefined if it waits for the result. */
function findFollow({ entry, input }: AdmittedRequest): Follow<never> | undefined {
  const { follow } = entry.route
  return follow?.applies?.(input) === false ? undefined : follow
}

async function runJob(
  admitted: AdmittedRequest,
  background: boolean,
  slot: StreamPermit | null,
): Promise<void> {
  const { edge, exchange, entry, input } = admitted
  const { follow } = entry.route
  const key = readIdempotencyKey(exchange, entry)
  const links = parseJobLinks(admitted, background)
  const received = await entry.route.receive?.(input)
  const added = await addJob(admitted, { key, background, links, received }).catch(async (error) => {
    await received?.discard()
    throw error
  })
  if ('first' in added) await received?.discard()
  if ('first' in added) return replayJob(admitted, key!, added.first, slot)
  const { jobId, immediateAnswer } = added
  if (slot !== null) return openStream(admitted, await follow!.open(input, jobId), slot)
  const { answer, isFinal } =
    immediateAnswer === null ? await waitForJob(admitted, jobId) : { answer: immediateAnswer, isFinal: false }
  // After a disconnect the answer may be incomplete, so it is not stored. A repetition reads the job instead.
  if (key !== null && isFinal && !exchange.responder.isDone) await storeJobAnswer(edge, key, answer)
  await exchange.sendStored(answer)
}

interface JobOptions {
  readonly key: KeyRef | null
  readonly background: boolean
  readonly links: JobLinks | null
  readonly received: ReceivedBody | undefined
}

interface AddedJob {
  readonly jobId: string
  /** The answer for a caller who does not wait for the job; otherwise null. */
  readonly immediateAnswer: StoredReply | null
}

/** Adds the job, or finds the job of the first request with the same key. */
async function addJob(
  admitted: AdmittedRequest,
  { key, background, links, received }: JobOptions,
): Promise<{ first: Claim } | AddedJob> {
  const { edge, entry } = admitted
  if (received !== undefined) await admitted.readmit()
  if (entry.route.task !== undefined && key === null && links === null) {
    const jobId = await addBatched(admitted)
    return { jobId, immediateAnswer: background ? buildAcceptedAnswer(jobId) : null }
  }
  return edge.db.transaction(async (tx) => {
    const used = key === null ? null : { ...key, fingerprint: computeJobFingerprint(admitted, received) }
    const first = used === null ? null : await claimIdempotencyKey(tx, used)
    if (first !== null) return { first }
    const added = await addInTransaction(tx, admitted, received)
    const { jobId, immediateResult } = added
    const immediateAnswer = background
      ? buildAcceptedAnswer(jobId)
      : immediateResult === undefined
        ? null
        : buildImmediateAnswer(admitted, immediateResult)
    if (links !== null) await linkJob(tx, admitted, added, links)
    if (used !== null)
      await tx.run(
        storeKey(used, { jobId, ...(immediateAnswer === null ? {} : { answer: immediateAnswer }) }),
      )
    return { jobId, immediateAnswer }
  })
}

/** Builds the answer that a route gives before its job ends. */
function buildImmediateAnswer({ edge, entry }: AdmittedRequest, value: unknown): StoredReply {
  const answer = toCheckedAnswer(edge, entry, value)
  return { status: answer.status ?? 200, headers: answer.headers, body: bodyOf(answer) }
}

/** Returns the request's fingerprint, in which `received` replaces the body. */
function computeJobFingerprint(
  { edge, exchange, fingerprint }: AdmittedRequest,
  received: ReceivedBody | undefined,
): Buffer {
  if (received === undefined) return fingerprint()
  const { method, path, query } = exchange.request
  return computeFingerprint(edge.keys, method, path, query, received.fingerprint)
}

async function addInTransaction(
  tx: Transaction,
  admitted: AdmittedRequest,
  received: ReceivedBody | undefined,
): Promise<Pick<JobRef<unknown>, 'jobId' | 'joined' | 'immediateResult'>> {
  const { job } = admitted.entry.route
  const { caller } = admitted.exchange
  if (job !== undefined) return job({ ...(admitted.input as object), caller, tx, received } as never)
  const spec = await buildJobSpec(admitted, (statement, values) => readWithin(tx, statement, values))
  const { job_id, joined } = await tx.one(enqueueJobs([spec], admitted.edge.settings.quotas.waiting_jobs))
  return { jobId: job_id, joined }
}

/** Adds the job in a statement that it shares with other requests. */
async function addBatched(admitted: AdmittedRequest): Promise<string> {
  const { enqueuer, reader } = admitted.edge
  const [added] = await enqueuer.add([await buildJobSpec(admitted, reader.text)])
  return added!.job_id
}

async function buildJobSpec(
  { edge, entry, exchange, input }: AdmittedRequest,
  read: TaskInput['read'],
): Promise<JobSpec> {
  const job = await entry.route.task!({ ...(input as object), read } as never)
  return job.spec({
    ownerId: exchange.caller?.ownerId ?? null,
    requestId: exchange.requestId,
    settings: edge.settings,
  })
}

export async function respondWithStream(admitted: AdmittedRequest): Promise<void> {
  await withStreamSlot(admitted, async (slot) => {
    const { entry, input } = admitted
    return openStream(admitted, await entry.route.stream!(input), slot)
  })
}

/** Reserves a stream slot and runs the work. Releases the slot if the work opened no stream. */
async function withStreamSlot(
  admitted: AdmittedRequest,
  work: (slot: StreamPermit) => Promise<void> | void,
): Promise<void> {
  const { caller, address } = admitted.exchange
  const slot = admitted.streams.acquirePermit({ accountId: caller?.ownerId ?? null, address })
  try {
    await work(slot)
  } finally {
    if (!slot.isHeldByStream) slot.release()
  }
}

function openStream(
  { edge, exchange, streams }: AdmittedRequest,
  source: StreamSource,
  slot: StreamPermit,
  headers: readonly Header[] = [],
): Promise<void> | void {
  // A 204 stops a reconnecting EventSource after all events were delivered.
  if (source === 'ended') return exchange.sendEmpty(204)
  const head = exchange.buildHead(200, [...SSE_HEADERS, ...headers])
  if (exchange.request.method === 'HEAD') return exchange.responder.send({ ...head, isHead: true })
  const { caller } = exchange
  const subscriber = {
    accountId: caller?.ownerId ?? null,
    isAuthorized: async () => caller === null || edge.authenticator.isStillAuthorized(caller),
  }
  streams.open(exchange.responder, head, source, subscriber, slot)
}

export async function respondWithRaw(admitted: AdmittedRequest): Promise<void> {
  const { entry, exchange, input } = admitted
  const raw = {
    ...new RequestWrites(admitted, readIdempotencyKey(exchange, entry)).extendInput(input),
    responder: exchange.responder,
    head: (status: number, headers: Parameters<RequestContext['buildHead']>[1]) =>
      exchange.buildHead(status, headers),
  }
  const answer = await entry.route.raw!(raw as never)
  if (answer !== undefined) await sendAnswer(exchange, answer)
}

interface WaitedAnswer {
  readonly answer: StoredReply
  /** True if repetitions of the request get the same answer. */
  readonly isFinal: boolean
}

async function waitForJob({ edge, entry, exchange }: AdmittedRequest, jobId: string): Promise<WaitedAnswer> {
  const disconnected = new AbortController()
  exchange.responder.onClose(() => disconnected.abort())
  const event = await edge.hub.waitForTerminal(
    jobId,
    edge.settings.requestWaitSeconds * 1000,
    disconnected.signal,
  )
  if (event !== null) return { answer: buildJobAnswer(edge, entry, event), isFinal: true }
  // Clients of OpenAI's protocol take any success for an answer.
  return entry.area.errorFormat === 'openai'
    ? { answer: answerFailure(entry.area, fail('ai.unfinished')), isFinal: false }
    : { answer: buildAcceptedAnswer(jobId), isFinal: true }
}

async function replayJob(
  admitted: AdmittedRequest,
  key: KeyRef,
  first: Claim,
  slot: StreamPermit | null,
): Promise<void> {
  const { edge, entry, exchange, input } = admitted
  const { follow } = entry.route
  if (slot !== null && first.status === null && first.job_id !== null)
    return openStream(admitted, await follow!.open(input, first.job_id), slot, [REPLAYED_HEADER])
  // The process of the first request may have died before storing the answer, but the job still has the result.
  const event =
    first.status === null && first.job_id !== null
      ? await edge.hub.waitForTerminal(first.job_id, REPEAT_WAIT_MS)
      : null
  const answer = event === null ? requireStoredAnswer(first) : buildJobAnswer(edge, entry, event)
  if (event !== null) await storeJobAnswer(edge, key, answer)
  await exchange.sendStored(markReplayed(answer))
}

function buildAcceptedAnswer(jobId: string): StoredReply {
  return {
    status: 202,
    headers: [['location', `/api/v1/jobs/${jobId}`]],
    body: JSON.stringify({ job_id: jobId }),
  }
}

/** Returns the answer for a caller who waits for a job. */
function buildJobAnswer(edge: Edge, entry: RouteEntry, event: JobEvent): StoredReply {
  const { area, route } = entry
  if (event.status === 'done') {
    const { result = null } = JSON.parse(event.frame) as { result?: unknown }
    return { status: 200, headers: [], body: JSON.stringify(route.answer?.(result) ?? result) }
  }
  const failure = toJobFailure(event)
  const { retryAfter } = failure
  checkRefusal(edge, entry, failure.code)
  const answer = answerFailure(area, failure)
  if (retryAfter === undefined) return answer
  return { ...answer, headers: [...answer.headers, ['retry-after', String(retryAfter)]] }
}

/** Returns the failure of a job that did not complete. */
export function toJobFailure(event: JobEvent): Failure {
  const { error } = JSON.parse(event.frame) as {
    error?: { code: string; detail: string; retry_after?: number }
  }
  return error === undefined ? fail('job.cancelled') : restoreFailure(error)
}
