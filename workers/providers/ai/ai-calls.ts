import { Failure, fail } from '../../../sql/errors.ts'
import { requireApiKey } from '../../../tasks/ai/keys.ts'
import { type AiProvider, keySettingName } from '../../../tasks/ai/providers.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { parseRetryAfter } from '../breaker.ts'
import type { StartLimits, StartWait } from '../start-limit.ts'
import { describeNetworkError } from '../wait.ts'
import { bodyOfRefusal, createClient, type OpenAI, type StartOption } from './openai.ts'
import { type Report, readReport } from './reports.ts'

/** Provides clients, limits and errors for all calls to AI providers. */

// The client's own timeout must fire after ours, because only our error gives the reason.
const CLIENT_TIMEOUT_MARGIN_MS = 5000

/** Creates one client per provider, on first use. @throws fail('ai.missing_key') */
export function createClients({ ai }: Pick<Settings, 'ai'>): (provider: AiProvider) => Promise<OpenAI> {
  const clients = new Map<AiProvider, Promise<OpenAI>>()
  return async (provider) => {
    const apiKey = requireApiKey(ai, provider)
    const { baseUrl } = ai.endpoints[provider]
    const existing = clients.get(provider)
    if (existing !== undefined) return existing
    // The job decides about retries: it knows what output is already visible, and how many attempts remain.
    const created = createClient({ apiKey, baseUrl }, ai.timeoutSeconds * 1000 + CLIENT_TIMEOUT_MARGIN_MS, 0)
    clients.set(provider, created)
    return created
  }
}

/** Limits the time between two chunks of an answer. */
export interface IdleTimeout {
  /** Aborts when the timeout expires. */
  readonly signal: AbortSignal
  /** Error text of the timeout; null before it expires. */
  readonly reason: string | null
  restart(): void
  /** Stops the timeout until `restart`. */
  hold(): void
  /** Stops the timeout for good. */
  clear(): void
}

/** The rates of models, and the rule for requests that may run again, see `StartWait`. */
export interface ModelStarts {
  readonly limits: StartLimits['models']
  readonly wait: StartWait
}

export const NO_STARTS: ModelStarts = { limits: null, wait: 'release' }

/** Returns the option of a request to a provider that has a rate. Its wait is not silence of the provider. */
export function createStartOption(
  { limits, wait }: ModelStarts,
  provider: AiProvider,
  signal: AbortSignal,
  idleTimeout?: IdleTimeout,
): StartOption {
  if (limits === null) return {}
  const start = async (): Promise<void> => {
    idleTimeout?.hold()
    await limits[provider].enter(wait, signal)
    idleTimeout?.restart()
  }
  return { start }
}

export function createIdleTimeout(seconds: number): IdleTimeout {
  const abort = new AbortController()
  const start = (): NodeJS.Timeout => setTimeout(() => abort.abort(), seconds * 1000)
  let timer: NodeJS.Timeout | null = start()
  let isCleared = false
  const hold = (): void => {
    clearTimeout(timer ?? undefined)
    timer = null
  }
  return {
    signal: abort.signal,
    get reason() {
      return abort.signal.aborted ? `it sent nothing for ${seconds} s` : null
    },
    restart: () => {
      if (!isCleared) timer = timer?.refresh() ?? start()
    },
    hold,
    clear: () => {
      isCleared = true
      hold()
    },
  }
}

/**
 * Maximum size of an answer, in characters or bytes. The longest requested answer, a million tokens, has four to five
 * million characters. A day of speech has about one million, and its segment times another million.
 */
export const MAX_ANSWER_SIZE = 16 * 1024 * 1024

export const createTooLargeFailure = (): Failure => fail('ai.refused', { reason: 'its answer is too large' })

/**
 * Reads the JSON body of an answer; calls `onChunk` for each chunk.
 * @throws {@link createTooLargeFailure}; Unreadable.
 */
export async function readJson(response: Response, onChunk: () => void = () => {}): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    onChunk()
    size += chunk.length
    // Leaving the loop cancels the download.
    if (size > MAX_ANSWER_SIZE) throw createTooLargeFailure()
    chunks.push(chunk)
  }
  return parseJson(Buffer.concat(chunks).toString())
}

/** @throws Unreadable. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Unreadable(UNREADABLE_REASON, { cause: error })
  }
}

/** An unusable answer; the message gives the reason. */
export class Unreadable extends Error {}

export const UNREADABLE_REASON = 'its answer could not be read'

/** An error that the provider reported within an answer of status 200. */
export class ReportedError extends Error {
  readonly report: Report
  constructor(report: Report) {
    super('The provider reported an error')
    this.report = report
  }
}

export interface FailedCall {
  readonly provider: AiProvider
  readonly model: string
  /** True if part of the answer has already been passed on. */
  readonly hasOutput: boolean
  readonly timeoutReason: string | null
  /** Explains a refusal that only some calls can get; null if the report does not say more. */
  readonly explainRefusal?: (report: Report) => string | null
}

/**
 * Converts an error of the client into a failure. The failure never contains the provider's own words, which may quote
 * keys and messages.
 */
export function toCallFailure(error: unknown, call: FailedCall): Failure {
  if (error instanceof Failure) return error
  const { reason, canRetry, retryAfter, isProviderFault } = describeError(error, call)
  if (call.hasOutput) return fail('ai.interrupted', { reason }, { cause: error })
  const options = { cause: error, isProviderFault, ...(retryAfter === null ? {} : { retryAfter }) }
  return fail(canRetry ? 'ai.failed' : 'ai.refused', { reason }, options)
}

interface Reason {
  readonly reason: string
  /** True if a retry can succeed. */
  readonly canRetry: boolean
  readonly retryAfter: number | null
  /** True if the request is not the cause. */
  readonly isProviderFault: boolean
}

/** Returns the report in an error of the client or of an answer; null if the provider reported nothing. */
export function findErrorReport(error: unknown): Report | null {
  if (error instanceof ReportedError) return error.report
  const { status, headers } = error as { readonly status?: unknown; readonly headers?: unknown }
  if (typeof status !== 'number') return null
  const report = readReport(bodyOfRefusal(error), status)
  return { ...report, retryAfter: readRetryAfter(headers) ?? report.retryAfter }
}

/** Reads the pause that a provider asks for, in seconds; null if it asks for none. */
function readRetryAfter(headers: unknown): number | null {
  if (!(headers instanceof Headers)) return null
  const ms = headers.get('retry-after-ms') ?? ''
  if (/^\d{1,12}(\.\d+)?$/.test(ms)) return Math.ceil(Number(ms) / 1000)
  return parseRetryAfter(headers.get('retry-after'))
}

const transient = (reason: string, retryAfter: number | null = null): Reason => ({
  ...{ reason, canRetry: true, retryAfter },
  isProviderFault: true,
})
const permanent = (reason: string, isProviderFault: boolean): Reason => ({
  ...{ reason, canRetry: false, retryAfter: null },
  isProviderFault,
})

function describeError(error: unknown, call: FailedCall): Reason {
  if (call.timeoutReason !== null) return transient(call.timeoutReason)
  const report = findErrorReport(error)
  if (report !== null) return describeReport(report, call, error instanceof ReportedError)
  if (error instanceof Unreadable) return transient(error.message)
  const network = describeNetworkError(error)
  return transient(
    network.code === 'no answer' ? 'the connection broke' : `the connection failed (${network.code})`,
  )
}

function describeReport(report: Report, call: FailedCall, isInAnswer: boolean): Reason {
  // An error of unknown kind within an answer may be an outage of the model's host.
  const status = report.status ?? 500
  const kind = isInAnswer ? describeKind(report) : String(status)
  const source = /^\d+$/.test(kind) ? `HTTP status ${kind}` : `it reported an error (${kind})`
  const refusal = describeRefusal(report, status, call)
  if (refusal !== null) return permanent(refusal, true)
  const explained = call.explainRefusal?.(report) ?? null
  if (explained !== null) return permanent(explained, false)
  const denial = describeDenial(report, status, call)
  if (denial !== null) return permanent(denial, true)
  if (!isTransient(status)) {
    const reason = isInAnswer ? source : `it refused the request (HTTP status ${status})`
    return permanent(reason, !REQUEST_STATUSES.includes(status))
  }
  const { retryAfter } = report
  const reason = status === 429 ? 'too many requests' : source
  return retryAfter === null
    ? transient(reason)
    : transient(`${reason}; it asks to wait ${retryAfter} s`, retryAfter)
}

// Statuses of requests that any provider would refuse.
const REQUEST_STATUSES: readonly number[] = [400, 413, 422]

/** Returns the code of a report if it is an identifier, which cannot quote anything. */
const describeKind = ({ codes }: Report): string =>
  codes.find((code) => /^([45]\d\d|[a-z]{3,20}(_[a-z]{2,20}){0,4})$/.test(code)) ?? 'without a code'

/** Returns the refusal of the key or of the account; null if the report proves neither. */
function describeRefusal(
  { codes, message }: Report,
  status: number,
  { provider }: FailedCall,
): string | null {
  const has = (format: RegExp): boolean => codes.some((code) => format.test(code))
  if (status === 401 || has(/api_key/) || (status < 429 && INVALID_KEY.test(message)))
    return `it does not accept ${keySettingName(provider)}`
  if (
    status === 402 ||
    has(/^insufficient_quota$|^billing/) ||
    (!isTransient(status) && NO_CREDIT.test(message))
  )
    return 'the quota of the account is exhausted'
  return null
}

/** Returns the refusal of the model or of the endpoint; null if the report proves neither. */
function describeDenial(
  { codes, message, isStructured }: Report,
  status: number,
  { model }: FailedCall,
): string | null {
  const has = (format: RegExp): boolean => codes.some((code) => format.test(code))
  if (has(/unsupported_country/)) return 'it does not serve the country or region of this service'
  if (status === 403) return 'it denied access to the model or the endpoint (HTTP status 403)'
  const isUnknown = status === 404 && isStructured && !UNKNOWN_PATH.test(message)
  if (isUnknown || (status === 400 && (has(UNKNOWN_MODEL_CODE) || UNKNOWN_MODEL.test(message))))
    return `it has no model ${model}`
  return null
}

const INVALID_KEY =
  /\b(invalid|incorrect|wrong|expired)\b.{0,20}\bapi.?key|\bapi.?key\b.{0,20}\b(invalid|incorrect|not valid|expired)/i
const NO_CREDIT = /credit balance|insufficient (balance|credit|funds)|out of credits/i
// Mistral and Groq refuse unknown and former models with status 400.
const UNKNOWN_MODEL_CODE = /^(invalid_model|model_(not_found|decommissioned|deprecated))$/
const UNKNOWN_MODEL = /^invalid model\b|\bmodel\b.{0,80}\b(does not exist|not found|decommissioned)/im
const UNKNOWN_PATH = /\b(url|path|route|endpoint)\b|^not found$/i

/** True if the same request may succeed later. */
export const isTransient = (status: number): boolean =>
  status === 408 || status === 409 || status === 429 || status >= 500
