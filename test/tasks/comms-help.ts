import { randomUUID } from 'node:crypto'
import { type Channel, findSendById, insertSend, type Send } from '../../sql/comms/sends.ts'
import { Failure, fail } from '../../sql/errors.ts'
import type {
  Comms,
  EmailMessage,
  EmailSubmitResult,
  ProviderMessage,
  ProviderRequest,
  SubmitResult,
} from '../../tasks/comms/ports.ts'
import type { TaskContext } from '../../tasks/context.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import type { TestDatabase } from '../database.ts'

/** Runs attempts at a send, with a provider that the test controls. */

/**
 * Response of the provider to a request: an answer, or an error to throw. With `dies`, the worker is killed during the
 * request.
 */
export type Behaviour = EmailSubmitResult | Promise<SubmitResult> | Failure | 'dies' | 'dies before'

export class WorkerDeath extends Error {}

export interface SendBench {
  readonly id: string
  /** Number of requests that reached the provider. */
  requests: number
  /** Number of lookups that reached the provider. */
  lookups: number
  /** Recipients of each email, as far as a request does not have all. */
  readonly pending: (readonly string[] | undefined)[]
  behaviour: Behaviour
  /** Messages that the provider lists, or its failure. */
  list:
    | readonly ProviderMessage[]
    | Failure
    | ((look: number) => readonly ProviderMessage[] | Promise<readonly ProviderMessage[]>)
  isRepeatable: boolean
  /** True if the server refuses the request before the message. */
  beginsNothing: boolean
  /** True if a later attempt has replaced this one. */
  isSuperseded: boolean
  readonly abort: AbortController
  readonly context: TaskContext
  row(): Promise<Send & { requests: number; error_code: string | null; delay: number | null }>
  /** Moves the time of the request into the past. */
  age(hours: number): Promise<unknown>
}

export const createAccepted = (
  providerId: string | null = `SM${randomUUID().replaceAll('-', '')}`,
): SubmitResult => ({
  kind: 'taken',
  providerId,
  status: 'queued',
  detail: null,
})
export const createUnknown = (answered = false): SubmitResult => ({
  kind: 'unknown',
  reason: 'no answer',
  answered,
})

const MESSAGES = {
  email: { to: ['a@example.com'], subject: 's', text: 't' },
  sms: { to: '+14155552671', body: 'text' },
  call: { to: '+14155552671', script_url: 'https://example.com/' },
}

export async function createBench(
  { db, query }: TestDatabase,
  channel: Channel,
  recipients: readonly string[] = channel === 'email' ? ['a@example.com'] : ['+14155552671'],
): Promise<SendBench> {
  const id = randomUUID()
  const message = { ...MESSAGES[channel], to: channel === 'email' ? recipients : recipients[0] }
  await db.run(insertSend({ id, channel, ownerId: null, jobId: randomUUID(), recipients, message }))
  const hand = async (request: ProviderRequest): Promise<EmailSubmitResult> => {
    // As of the start of the request: a test may set another behaviour for the next attempt.
    const { behaviour } = bench
    if (behaviour === 'dies before') throw new WorkerDeath()
    if (!bench.beginsNothing) await request.begin()
    bench.requests++
    if (behaviour === 'dies') throw new WorkerDeath()
    if (behaviour instanceof Failure) throw behaviour
    return behaviour
  }
  const find = async (): Promise<readonly ProviderMessage[]> => {
    bench.lookups++
    if (bench.list instanceof Failure) throw bench.list
    return typeof bench.list === 'function' ? bench.list(bench.lookups) : bench.list
  }
  const comms: Comms = {
    get isEmailIdempotent() {
      return bench.isRepeatable
    },
    email: ({ pending }: EmailMessage, request) => {
      bench.pending.push(pending)
      return hand(request)
    },
    sms: (_message, request) => hand(request) as Promise<SubmitResult>,
    call: (_message, request) => hand(request) as Promise<SubmitResult>,
    findSms: find,
    findCall: find,
    lookupDelaysMs: [0, 5, 10],
    checkSender: () => Promise.resolve(),
    domains: {} as never,
  }
  const abort = new AbortController()
  const context = {
    db,
    settings: parseSettings({}),
    job: { id: randomUUID(), attempt: 1, ownerId: null, requestId: null },
    log: { info: () => {}, warn: () => {}, error: () => {} },
    signal: abort.signal,
    reportProgress: () => {},
    providers: { comms },
    runFenced: (work: Parameters<TaskContext['runFenced']>[0]) =>
      bench.isSuperseded ? Promise.reject(fail('job.superseded')) : db.transaction(work),
  } as unknown as TaskContext
  const bench: SendBench = {
    id,
    requests: 0,
    lookups: 0,
    pending: [],
    behaviour: createAccepted(),
    list: [],
    isRepeatable: false,
    beginsNothing: false,
    isSuperseded: false,
    abort,
    context,
    row: async () => {
      const [more] = await query(
        `select requests, error_code, extract(epoch from next_attempt_at - now())::float8 as delay
         from comms_send where id = $1`,
        [id],
      )
      return {
        ...(await db.one(findSendById(id))),
        ...(more as { requests: number; error_code: string | null; delay: number | null }),
      }
    },
    age: (hours) =>
      query(`update comms_send set created_at = created_at - make_interval(hours => $2) where id = $1`, [
        id,
        hours,
      ]),
  }
  return bench
}
