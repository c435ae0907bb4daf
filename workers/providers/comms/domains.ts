import { z } from 'zod'
import { type Failure, fail } from '../../../sql/errors.ts'
import type { Comms, Domain, Domains, DomainWithRecords } from '../../../tasks/comms/ports.ts'
import type { EmailSettings } from '../../../tasks/comms/settings.ts'
import { normalizeDomain } from '../../../tasks/platform/email-address.ts'
import { createBreaker, parseRetryAfter } from '../breaker.ts'
import { recordCall } from '../call.ts'
import { describeNetworkError, throwIfShort, waitFor } from '../wait.ts'

/**
 * Manages the sender domains of the account through the provider's REST API
 * (https://resend.com/docs/api-reference/domains/list-domains).
 */

const LIMITS = { answerMs: 10_000, freshMs: 300_000, staleMs: 5_000, retryMs: 30_000, maxWaitMs: 2000 }

/** Returns a name of the provider's list in the form of this service's addresses. */
const toComparableName = (name: string): string => normalizeDomain(name) ?? name.toLowerCase()

const Listed = z.object({
  id: z.string(),
  name: z.string(),
  status: z.string(),
  region: z.string().nullish(),
  created_at: z.string().nullish(),
})
const DomainWithRecordsAnswer = Listed.extend({
  records: z
    .array(
      z.object({
        record: z.string().nullish(),
        type: z.string(),
        name: z.string(),
        value: z.string(),
        ttl: z.union([z.string(), z.number()]).nullish(),
        priority: z.number().nullish(),
        status: z.string().nullish(),
      }),
    )
    .default([]),
})
const Page = z.object({ data: z.array(Listed), has_more: z.boolean().optional() })
const Refusal = z.object({ name: z.string().optional(), message: z.string().optional() })

// Limit of pages with 100 domains each. An account has few domains; the rest is ignored.
const MAX_PAGES = 10

// The last three statuses report DNS problems, but the provider still sends.
const SENDING_STATUSES = new Set(['verified', 'partially_verified', 'partially_failed', 'temporary_failure'])

interface Call {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body?: object
}

type CallApi = <T>(call: Call, schema: z.ZodType<T>, signal: AbortSignal) => Promise<T>

/** Thrown if the API key may only send. */
class SendOnlyKey extends Error {}

export function createDomains(
  settings: EmailSettings,
  limits = LIMITS,
): Pick<Comms, 'domains' | 'checkSender'> {
  if (settings.apiKey === null) return UNCONFIGURED_DOMAINS
  const ask = createApiCaller(settings.apiBaseUrl, settings.apiKey, limits)
  const domains = createDomainCalls(ask)
  const check =
    settings.smtpUrl === 'outbox:'
      ? undefined
      : createSenderCheck((signal) => listAllDomains(ask, signal), limits)
  return { domains, checkSender: check ?? UNCONFIGURED_DOMAINS.checkSender }
}

const rejectNotConfigured = (): Promise<never> => Promise.reject(fail('domain.not_configured'))
const UNCONFIGURED_DOMAINS: Pick<Comms, 'domains' | 'checkSender'> = {
  domains: { list: rejectNotConfigured, add: rejectNotConfigured, check: rejectNotConfigured },
  checkSender: () => Promise.resolve(),
}

function createDomainCalls(ask: CallApi): Domains {
  const get = async (id: string, signal: AbortSignal): Promise<DomainWithRecords> =>
    toDomainWithRecords(
      await ask(
        { method: 'GET', path: `/domains/${encodeURIComponent(id)}` },
        DomainWithRecordsAnswer,
        signal,
      ),
    )
  const find = async (name: string, signal: AbortSignal): Promise<Domain | undefined> =>
    (await listAllDomains(ask, signal)).find((domain) => toComparableName(domain.name) === name)
  return {
    list: (signal) => explainSendOnlyKey(listAllDomains(ask, signal)),
    add: (name, region, signal) =>
      explainSendOnlyKey(
        (async () => {
          const known = await find(name, signal)
          if (known !== undefined) return get(known.id, signal)
          const body = { name, ...(region === undefined ? {} : { region }) }
          return toDomainWithRecords(
            await ask({ method: 'POST', path: '/domains', body }, DomainWithRecordsAnswer, signal),
          )
        })(),
      ),
    check: (name, signal) =>
      explainSendOnlyKey(
        (async () => {
          const known = await find(name, signal)
          if (known === undefined) return null
          const path = `/domains/${encodeURIComponent(known.id)}/verify`
          await ask({ method: 'POST', path }, z.unknown(), signal)
          return get(known.id, signal)
        })(),
      ),
  }
}

/** Converts `SendOnlyKey` into a refusal with an explanation. */
async function explainSendOnlyKey<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    if (!(error instanceof SendOnlyKey)) throw error
    throw fail('domain.refused', {
      reason: 'the API key may only send; managing domains requires full access',
    })
  }
}

async function listAllDomains(ask: CallApi, signal: AbortSignal): Promise<readonly Domain[]> {
  const all: Domain[] = []
  for (let page = 0; page < MAX_PAGES; page++) {
    const last = all.at(-1)
    const path = `/domains?limit=100${last === undefined ? '' : `&after=${encodeURIComponent(last.id)}`}`
    const { data, has_more } = await ask({ method: 'GET', path }, Page, signal)
    all.push(...data.map(toDomain))
    if (has_more !== true || data.length === 0) break
  }
  return all
}

/**
 * Checks senders against a cached domain list. A domain missing from the list refreshes it: the domain may have been
 * verified since. Checks are skipped while the list is unavailable or the key may only send, because the provider checks
 * senders, too.
 */
function createSenderCheck(
  list: (signal: AbortSignal) => Promise<readonly Domain[]>,
  limits: typeof LIMITS,
): Comms['checkSender'] {
  let cached: {
    readonly names: ReadonlySet<string> | null
    readonly at: number
    readonly lifetimeMs: number
  } | null = null
  let refreshing: Promise<void> | null = null
  const read = async (): Promise<void> => {
    const names = await list(new AbortController().signal).then(
      (all) =>
        new Set(
          all.filter(({ status }) => SENDING_STATUSES.has(status)).map(({ name }) => toComparableName(name)),
        ),
      () => null,
    )
    cached = { names, at: performance.now(), lifetimeMs: names === null ? limits.retryMs : limits.freshMs }
  }
  const refresh = (): Promise<void> => {
    refreshing ??= read().finally(() => {
      refreshing = null
    })
    return refreshing
  }
  return async (address, signal) => {
    const domain = toComparableName(address.slice(address.lastIndexOf('@') + 1))
    // The provider offers this domain for tests.
    if (domain === 'resend.dev') return
    const age = (): number => (cached === null ? Number.POSITIVE_INFINITY : performance.now() - cached.at)
    const isRefused = (): boolean => cached?.names !== null && cached?.names.has(domain) === false
    if (cached === null || age() > cached.lifetimeMs || (isRefused() && age() > limits.staleMs)) {
      await waitFor(refresh(), limits.answerMs * MAX_PAGES, signal, () => false)
      signal.throwIfAborted()
    }
    if (isRefused()) throw fail('email.sender_unverified', { domain })
  }
}

function createApiCaller(base: string, key: string, limits: typeof LIMITS): CallApi {
  const breaker = createBreaker('The REST API of the email provider', limits)
  return async (call, schema, signal) => {
    await breaker.enter(signal)
    const limitedSignal = AbortSignal.any([signal, AbortSignal.timeout(limits.answerMs)])
    const answer = await recordCall(
      { provider: 'resend', operation: `${call.method} /domains`, url: base },
      () => fetchAnswer(base, key, call, limitedSignal),
    ).catch((error: unknown) => {
      signal.throwIfAborted()
      throwIfShort(error)
      breaker.recordFailure()
      const isTimeout = error instanceof Error && error.name === 'TimeoutError'
      throw createApiFailure(isTimeout ? 'no answer in time' : describeNetworkError(error).code)
    })
    if (answer.status >= 500) {
      breaker.recordFailure()
      throw createApiFailure(`HTTP status ${answer.status}`)
    }
    breaker.recordSuccess()
    if (answer.status === 429) {
      const seconds = answer.retryAfter ?? 1
      breaker.pause(seconds)
      throw createApiFailure('too many requests', seconds)
    }
    if (answer.status >= 300) throw toRefusal(answer.status, answer.body, key)
    const parsed = schema.safeParse(answer.body)
    if (!parsed.success) throw createApiFailure('its answer could not be read')
    return parsed.data
  }
}

interface Answer {
  readonly status: number
  readonly retryAfter: number | null
  readonly body: unknown
}

async function fetchAnswer(base: string, key: string, call: Call, signal: AbortSignal): Promise<Answer> {
  const response = await fetch(`${base}${call.path}`, {
    method: call.method,
    headers: {
      authorization: `Bearer ${key}`,
      'user-agent': 'millrace',
      ...(call.body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
    redirect: 'error',
    signal,
  })
  const text = await response.text()
  let body: unknown = null
  try {
    body = JSON.parse(text)
  } catch {
    // The body is not the API's JSON: only the status counts.
  }
  return { status: response.status, retryAfter: parseRetryAfter(response.headers.get('retry-after')), body }
}

/**
 * Converts a refusal into an error. The error quotes the provider's message, which is about domains, on one line and
 * without the key.
 */
function toRefusal(status: number, body: unknown, key: string): Error {
  const { name, message } = Refusal.safeParse(body).data ?? {}
  if (name === 'restricted_api_key') return new SendOnlyKey()
  if (status === 401 || name === 'invalid_api_key' || name === 'missing_api_key')
    return fail('domain.refused', { reason: 'it does not accept the key' })
  const quote = (message ?? '')
    .replaceAll(key, '***')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, 200)
  return fail('domain.refused', { reason: quote === '' ? `HTTP status ${status}` : quote })
}

function createApiFailure(reason: string, retryAfter?: number): Failure {
  return fail('domain.failed', { reason }, retryAfter === undefined ? {} : { retryAfter })
}

function toDomain({ id, name, status, region, created_at }: z.output<typeof Listed>): Domain {
  return { id, name, status, region: region ?? null, created_at: created_at ?? null }
}

function toDomainWithRecords({
  records,
  ...domain
}: z.output<typeof DomainWithRecordsAnswer>): DomainWithRecords {
  return {
    ...toDomain(domain),
    records: records.map(({ record, type, name, value, ttl, priority, status }) => ({
      purpose: record ?? null,
      type,
      name,
      value,
      ttl: ttl === undefined || ttl === null ? null : String(ttl),
      priority: priority ?? null,
      status: status ?? null,
    })),
  }
}
