import { accountErrors } from './accounts/errors.ts'
import { aiErrors } from './ai/errors.ts'
import { blogErrors } from './blog/errors.ts'
import { budgetErrors, type ExceededBudget } from './budgets/errors.ts'
import { messageErrors } from './comms/errors.ts'
import { documentErrors } from './documents/errors.ts'
import { jobErrors } from './jobs/errors.ts'
import { keyErrors } from './keys/errors.ts'
import { llmErrors } from './llm/errors.ts'
import { orgErrors } from './orgs/errors.ts'
import { paymentErrors } from './payments/errors.ts'
import { quotaErrors } from './quotas/errors.ts'
import { ragErrors } from './rag/errors.ts'
import { scheduleErrors } from './schedules/errors.ts'
import { voiceErrors } from './voice/errors.ts'
import { webhookErrors } from './webhooks/errors.ts'
import { workerQueueErrors } from './worker-queues/errors.ts'

/**
 * Table of all errors, with the public text of each and whether a retry can help. The edge maps each code to an HTTP
 * status. Routes declare the codes they can return, jobs store `{code, detail}`, and OpenAPI lists both.
 */

/**
 * Rule for a job that failed. `free`: the retry costs no try, because the job did not get its chance. Examples are an
 * outage, a shortage of the machine, and a provider that the service does not ask.
 */
export type Retry = 'never' | 'later' | 'free'

interface ErrorRow {
  /** Public text. The failure's data fills its `{name}` placeholders. Never contains exception text. */
  readonly detail: string
  /** Set if jobs that fail with this error are retried. */
  readonly retry?: 'later' | 'free'
}

const errorTable = {
  'request.malformed': { detail: 'The request could not be read: {reason}' },
  'request.invalid': { detail: '{reason}' },
  'request.too_large': { detail: 'The body is larger than the limit of {limit} bytes' },
  'request.media_type': { detail: 'Content-Type must be {expected}' },
  'request.incomplete': { detail: 'The connection closed before the entire body arrived' },
  'request.range': { detail: 'The range lies outside the content' },
  'request.cross_site': { detail: 'A page on another site may not make this request' },
  'request.misdirected': {
    detail: 'This service does not serve that host; set PUBLIC_BASE_URL or ALLOWED_HOSTS',
  },
  'route.missing': { detail: 'No such path' },
  'route.method': { detail: 'Method not allowed; this path accepts {allow}' },
  'stream.limited': { detail: 'Too many event streams are open; close one first' },
  'request.limited': { detail: 'Too many requests; try again in {seconds} s' },
  'idempotency.running': {
    detail: 'The first request with this Idempotency-Key is still running',
  },
  'idempotency.mismatch': {
    detail: 'This Idempotency-Key was already used with a different request',
  },
  ...accountErrors,
  ...aiErrors,
  ...blogErrors,
  ...messageErrors,
  ...documentErrors,
  ...jobErrors,
  ...keyErrors,
  ...llmErrors,
  ...orgErrors,
  ...paymentErrors,
  ...quotaErrors,
  ...budgetErrors,
  ...ragErrors,
  ...scheduleErrors,
  ...voiceErrors,
  ...webhookErrors,
  ...workerQueueErrors,
  'database.busy': { detail: 'The service is overloaded; try again shortly', retry: 'later' },
  'database.too_slow': {
    detail: 'The query exceeded its time limit; narrow the request or try again later',
    retry: 'later',
  },
  'database.down': {
    detail: 'The database cannot be reached; try again shortly',
    retry: 'free',
  },
  'provider.paused': { detail: '{provider} is not asked at the moment: {reason}', retry: 'free' },
  'provider.rate_limited': {
    detail: '{setting} allows the next request to the provider in {seconds} s',
    retry: 'free',
  },
  'service.short': {
    detail: 'The service is short of memory, disk space, processes or file descriptors; try again shortly',
    retry: 'free',
  },
  'service.stopping': { detail: 'The service is restarting; try again shortly', retry: 'free' },
  internal: { detail: 'Internal error (request {requestId})' },
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof errorTable

/** One problem with a request's input, as listed in a 422 body. */
export interface InputProblem {
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly type: string
}

interface FailureOptions {
  readonly cause?: unknown
  readonly problems?: readonly InputProblem[]
  readonly retryAfter?: number
  /** Takes precedence over the rule of the code. */
  readonly retry?: Retry
  /** Scope that an API key lacks. */
  readonly scope?: string
  /** Budget that the request would exceed. */
  readonly budget?: ExceededBudget
  /** True if a provider failed or refused, whatever the request says. Another provider may answer it. */
  readonly isProviderFault?: boolean
}

/** A failure that clients may see. {@link fail} creates it, the edge renders it, and jobs store it. */
export class Failure extends Error {
  readonly code: ErrorCode
  readonly detail: string
  readonly problems: readonly InputProblem[] | undefined
  /** Seconds after which a retry can help; undefined if unknown. */
  readonly retryAfter: number | undefined
  readonly retry: Retry
  /** Scope that an API key lacks; only set for `auth.scope`. */
  readonly scope: string | undefined
  /** Budget that the request would exceed; only set for `quota.ai_budget` and `quota.ai_key_budget`. */
  readonly budget: ExceededBudget | undefined
  /** True if a provider failed or refused, whatever the request says. */
  readonly isProviderFault: boolean

  constructor(code: ErrorCode, detail: string, options?: FailureOptions) {
    super(detail, options?.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'Failure'
    this.code = code
    this.detail = detail
    this.problems = options?.problems
    this.retryAfter = options?.retryAfter
    this.retry = options?.retry ?? getErrorRow(code).retry ?? 'never'
    this.scope = options?.scope
    this.budget = options?.budget
    this.isProviderFault = options?.isProviderFault ?? false
  }

  get retryable(): boolean {
    return this.retry !== 'never'
  }
}

/**
 * Creates the failure for a code and fills in its text from `data`. Does not throw it: write `throw
 * fail('document.missing')`.
 */
export function fail(
  code: ErrorCode,
  data: Readonly<Record<string, string | number>> = {},
  options?: FailureOptions,
): Failure {
  const detail = errorTable[code].detail.replace(/\{(\w+)\}/g, (_, name: string) =>
    String(data[name] ?? name),
  )
  return new Failure(code, detail, options)
}

/** Returns the table row of a code. Its text still contains the placeholders. */
export function getErrorRow(code: ErrorCode): ErrorRow {
  return errorTable[code]
}

/** Restores the failure from a job's stored `{code, detail}`. Codes that this version does not know become `internal`. */
export function restoreFailure(stored: { code: string; detail: string; retry_after?: number }): Failure {
  const code = stored.code in errorTable ? (stored.code as ErrorCode) : 'internal'
  return new Failure(
    code,
    stored.detail,
    stored.retry_after === undefined ? {} : { retryAfter: stored.retry_after },
  )
}
