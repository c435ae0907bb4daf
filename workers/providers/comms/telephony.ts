import type { Twilio } from 'twilio'
import { createSemaphore } from '../../../sql/connections/semaphore.ts'
import { type Failure, fail } from '../../../sql/errors.ts'
import { buildCallbackUrl } from '../../../tasks/comms/callback.ts'
import {
  type CallMessage,
  type Comms,
  OPTED_OUT_CODE,
  OptedOutError,
  type ProviderMessage,
  type ProviderRequest,
  type SmsMessage,
  type SubmitResult,
} from '../../../tasks/comms/ports.ts'
import { SERVICE_PATTERN } from '../../../tasks/comms/sender.ts'
import { findMissingTelephonySettings, type TelephonySettings } from '../../../tasks/comms/settings.ts'
import { createLazy } from '../../../tasks/platform/lazy.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { createBreaker, parseRetryAfter } from '../breaker.ts'
import { recordCall } from '../call.ts'
import { chooseWait, type StartLimit } from '../start-limit.ts'
import { describeNetworkError, throwIfShort, type WaitResult, waitFor } from '../wait.ts'
import { explainError, isBusy } from './telephony-errors.ts'

/**
 * Sends text messages and makes calls through Twilio, which has no idempotency keys. The only importer of Twilio's SDK.
 */
export type Telephony = Pick<Comms, 'sms' | 'call' | 'findSms' | 'findCall' | 'lookupDelaysMs'>

// Twilio answers within two seconds. 24 concurrent requests are far below the limit of an account. Requests wait for the
// semaphore before `begin` records them.
const LIMITS = { answerMs: 15_000, concurrency: 24, maxWaitMs: 10_000 }

const LOOKUP_DELAYS_MS = [0, 1000, 3000]

// Limit of listed messages, above the number sent to one recipient within the minutes of a lookup.
const MAX_LISTED = 100

/** Creates a client; the first request loads the SDK. */
export function createTelephony(
  settings: Pick<Settings, 'telephony' | 'publicBaseUrl'>,
  limits = LIMITS,
  starts: StartLimit | null = null,
): Telephony {
  const { telephony } = settings
  const { phoneNumber, smsFrom } = telephony
  const requireSender = (sender: string | null): string => {
    if (sender === null || findMissingTelephonySettings(telephony, sender).length > 0)
      throw fail('telephony.not_configured')
    return sender
  }
  const { submit, list } = createTwilioCalls(telephony, limits)
  const callback = (id: string): { statusCallback?: string } => {
    const url = buildCallbackUrl(settings, id)
    return url === null ? {} : { statusCallback: url }
  }
  return {
    lookupDelaysMs: LOOKUP_DELAYS_MS,
    sms: async ({ id, to, from, body }: SmsMessage, request) => {
      const sender = toSender(requireSender(from ?? smsFrom))
      const create = (api: Twilio) => api.messages.create({ to, ...sender, body, ...callback(id) })
      return submit(request, create, starts)
    },
    call: async ({ id, to, scriptUrl, timeout }: CallMessage, request) => {
      const from = requireSender(phoneNumber)
      const ringing = timeout === undefined ? {} : { timeout }
      return submit(request, (api) =>
        api.calls.create({ to, from, url: scriptUrl, ...ringing, ...callback(id) }),
      )
    },
    findSms: async ({ to, from, body }, sinceMs, signal) => {
      const { messagingServiceSid, ...sender } = toSender(requireSender(from ?? smsFrom))
      const filter = { to, ...sender, limit: MAX_LISTED }
      return selectOldestFirst(
        await list(signal, (api) => api.messages.list(filter)),
        (one) =>
          isCreatedSince(one.dateCreated, sinceMs) &&
          isSameText(one.body, body) &&
          (messagingServiceSid === undefined || one.messagingServiceSid === messagingServiceSid),
      )
    },
    findCall: async ({ to }, sinceMs, signal) => {
      const filter = { to, from: requireSender(phoneNumber), limit: MAX_LISTED }
      return selectOldestFirst(await list(signal, (api) => api.calls.list(filter)), (one) =>
        isCreatedSince(one.dateCreated, sinceMs),
      )
    },
  }
}

/** Returns the parameter that names a sender of text messages. */
const toSender = (sender: string): { readonly from?: string; readonly messagingServiceSid?: string } =>
  SERVICE_PATTERN.test(sender) ? { messagingServiceSid: sender } : { from: sender }

interface TwilioCalls {
  /**
   * Makes a request that sends a message or starts a call, at the rate of `starts`.
   * @throws if the provider certainly did not accept it.
   */
  submit(
    request: ProviderRequest,
    create: (api: Twilio) => Promise<CreatedResource>,
    starts?: StartLimit | null,
  ): Promise<SubmitResult>
  /** Makes a read-only request. @throws fail('telephony.failed') */
  list<T>(signal: AbortSignal, read: (api: Twilio) => Promise<T>): Promise<T>
}

interface CreatedResource {
  readonly sid: string
  readonly status: string
}

function createTwilioCalls(settings: TelephonySettings, limits: typeof LIMITS): TwilioCalls {
  const breaker = createBreaker('The telephony provider', limits)
  const semaphore = createSemaphore(limits.concurrency)
  const span = { provider: 'twilio', url: settings.apiBaseUrl }
  const twilio = createLazy(() => createClient(settings, limits.answerMs))
  return {
    submit: (request, create, starts = null) =>
      semaphore.run(async () => {
        request.signal.throwIfAborted()
        await breaker.enter(request.signal)
        const api = await twilio()
        await starts?.enter(chooseWait(request), request.signal)
        await request.begin()
        const waited = await waitFor(
          recordCall({ ...span, operation: 'create' }, () => create(api)),
          limits.answerMs,
          request.signal,
        )
        return waited.kind === 'aborted'
          ? createUnknownOutcome('the attempt was cut short')
          : judgeOutcome(waited, breaker)
      }),
    list: (signal, read) =>
      semaphore.run(async () => {
        await breaker.enter(signal)
        const api = await twilio()
        const waited = await waitFor(
          recordCall({ ...span, operation: 'list' }, () => read(api)),
          limits.answerMs,
          signal,
        )
        if (waited.kind !== 'answer') {
          if (waited.kind === 'error') throwIfShort(waited.error)
          breaker.recordFailure()
          throw createApiFailure(
            waited.kind === 'error' ? describeNetworkError(waited.error).code : 'no answer in time',
          )
        }
        breaker.recordSuccess()
        return waited.value
      }),
  }
}

/** An error response of the provider, with its headers: the SDK's own errors omit them. */
class ErrorResponse extends Error {
  readonly status: number
  readonly code: number | null
  readonly retryAfter: number | null
  constructor(status: number, code: number | null, retryAfter: number | null) {
    super(`HTTP status ${status}`)
    this.status = status
    this.code = code
    this.retryAfter = retryAfter
  }
}

async function createClient(settings: TelephonySettings, answerMs: number): Promise<Twilio> {
  const { default: twilio } = await import('twilio')
  class HttpClient extends twilio.RequestClient {
    override async request<T>(options: Parameters<InstanceType<typeof twilio.RequestClient>['request']>[0]) {
      const uri = options.uri.replace(/^https:\/\/[^/]+/, settings.apiBaseUrl)
      const answer = await super.request<T>({ ...options, uri } as never)
      if (answer.statusCode < 300) return answer
      const { code } = (answer.body ?? {}) as { code?: unknown }
      const headers = (answer.headers ?? {}) as Record<string, unknown>
      throw new ErrorResponse(
        answer.statusCode,
        typeof code === 'number' ? code : null,
        parseRetryAfter(headers['retry-after']),
      )
    }
  }
  // No keep-alive: if the server closes a reused connection, the error does not show whether it received the request.
  const httpClient = new HttpClient({ timeout: answerMs, keepAlive: false })
  return new twilio.Twilio(settings.accountSid!, settings.authToken!, { httpClient })
}

/**
 * Interprets the outcome of a request.
 * @throws if the provider certainly did not accept the request.
 */
function judgeOutcome(
  waited: WaitResult<CreatedResource>,
  breaker: ReturnType<typeof createBreaker>,
): SubmitResult {
  if (waited.kind === 'answer' && typeof waited.value.sid === 'string') {
    breaker.recordSuccess()
    return { kind: 'taken', providerId: waited.value.sid, status: waited.value.status, detail: null }
  }
  const error = waited.kind === 'error' ? waited.error : null
  if (error instanceof ErrorResponse && error.status < 500) {
    breaker.recordSuccess()
    const reason = explainError(error.status, error.code)
    // Twilio did not process the request: https://www.twilio.com/docs/api/errors/20429
    if (isBusy(error.status, error.code)) {
      const seconds = error.retryAfter ?? 1
      if (error.status === 429) breaker.pause(seconds)
      throw createApiFailure(error.code === null ? 'too many requests' : reason, seconds)
    }
    throw fail(
      'telephony.refused',
      { reason },
      error.code === OPTED_OUT_CODE ? { cause: new OptedOutError() } : {},
    )
  }
  throwIfShort(error)
  breaker.recordFailure()
  if (error instanceof ErrorResponse) {
    const outcome = { ...createUnknownOutcome(`HTTP status ${error.status}`), answered: true }
    return error.retryAfter === null ? outcome : { ...outcome, retryAfter: error.retryAfter }
  }
  if (error === null)
    return createUnknownOutcome(
      waited.kind === 'timeout' ? 'it did not answer in time' : 'its answer could not be read',
    )
  const { code, sent } = describeNetworkError(error)
  if (!sent) throw createApiFailure(code)
  return createUnknownOutcome(`the connection broke (${code})`)
}

function createUnknownOutcome(reason: string): SubmitResult & { kind: 'unknown' } {
  return { kind: 'unknown', reason, answered: false }
}

function createApiFailure(reason: string, retryAfter?: number): Failure {
  return fail('telephony.failed', { reason }, retryAfter === undefined ? {} : { retryAfter })
}

function isCreatedSince(created: Date | undefined, sinceMs: number): boolean {
  return created !== undefined && created !== null && created.getTime() >= sinceMs
}

/** True if the texts match. Trial accounts prepend a line, and leading and trailing white space may be lost. */
function isSameText(theirs: string | undefined, ours: string): boolean {
  return theirs?.trim().endsWith(ours.trim()) ?? false
}

function selectOldestFirst<T extends { sid: string; status: string; dateCreated: Date }>(
  all: readonly T[],
  matches: (one: T) => boolean,
): ProviderMessage[] {
  return all
    .filter(matches)
    .sort((a, b) => a.dateCreated.getTime() - b.dateCreated.getTime())
    .map(({ sid, status }) => ({ providerId: sid, status }))
}
