/** Reads the errors that providers report, in refusals and within answers, to one form. */

/** An error as a provider reports it. Never shown to callers, because it may quote keys and messages. */
export interface Report {
  /** All texts of the report, the reasons of invalid fields included. */
  readonly message: string
  /** Codes and types, such as `context_length_exceeded`, in lower case. */
  readonly codes: readonly string[]
  /** Name of the parameter that the report is about; null if it has no field for it. */
  readonly parameter: string | null
  /** HTTP status of the error; null if neither the answer nor the codes have one. */
  readonly status: number | null
  /** Seconds after which a retry can help; null if unknown. */
  readonly retryAfter: number | null
  /** True if the body has the form of an error report, and is not, for example, a page of a proxy. */
  readonly isStructured: boolean
}

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the error in the body of an answer; null if the body is none. Google puts its errors into a list. */
export function findReport(body: unknown): Report | null {
  const first: unknown = Array.isArray(body) ? body[0] : body
  if (!isFields(first)) return null
  const isError = first.type === 'error' || first.object === 'error'
  return isError || hasContent(first.error) ? readReport(first, null) : null
}

/** True if a field has an error. Some gateways send an empty one with each answer. */
const hasContent = (error: unknown): boolean =>
  isFields(error) ? Object.values(error).some(Boolean) : Boolean(error)

/** Reads the body of a refusal. `status` is its HTTP status; null within an answer. */
export function readReport(body: unknown, status: number | null): Report {
  const outer: unknown = Array.isArray(body) ? body[0] : body
  if (!isFields(outer)) return { ...NO_REPORT, message: typeof outer === 'string' ? outer : '', status }
  const inner = isFields(outer.error) ? outer.error : outer
  const problems = [inner.detail, outer.detail].filter(Array.isArray).flat().filter(isFields)
  const details = (Array.isArray(inner.details) ? inner.details : []).filter(isFields)
  const codes = [inner.code, inner.type, inner.status, outer.code, outer.type]
    .concat(details.map(({ reason }) => reason))
    .filter((code) => typeof code === 'string' || typeof code === 'number')
    .map((code) => String(code).toLowerCase())
  return {
    message: collectText([
      outer.error,
      inner.message,
      inner.detail,
      outer.message,
      outer.detail,
      inner.metadata,
    ]),
    codes,
    parameter: findParameter(inner.param ?? outer.param ?? problems[0]?.loc),
    status: status ?? findStatus(codes),
    retryAfter: findDelay(details),
    isStructured: true,
  }
}

const NO_REPORT: Report = {
  message: '',
  codes: [],
  parameter: null,
  status: null,
  retryAfter: null,
  isStructured: false,
}

// Longer texts of a report are cut: no known one is longer.
const MAX_TEXT = 10_000

/** Joins all texts within some values. OpenRouter quotes the error of the model's host in `metadata.raw`. */
function collectText(values: readonly unknown[], depth = 0): string {
  if (depth > 4) return ''
  return [...new Set(values)]
    .map((value) => {
      if (typeof value === 'string') return value
      if (Array.isArray(value)) return collectText(value, depth + 1)
      return isFields(value) ? collectText(Object.values(value), depth + 1) : ''
    })
    .filter((text) => text !== '')
    .join('\n')
    .slice(0, MAX_TEXT)
}

/** Returns a field's path; a list of its parts is the form of FastAPI. */
function findParameter(given: unknown): string | null {
  const path = Array.isArray(given) ? given.join('.') : given
  return typeof path === 'string' && path !== '' ? path.replace(/^body\./, '') : null
}

/** Returns the delay of Google's `RetryInfo`, such as `34.07s`, in seconds. */
function findDelay(details: readonly Fields[]): number | null {
  for (const { retryDelay } of details) {
    const [, seconds] = /^(\d+(?:\.\d+)?)s$/.exec(String(retryDelay)) ?? []
    if (seconds !== undefined) return Math.ceil(Number(seconds))
  }
  return null
}

// Codes and types of errors within answers, of OpenAI, Anthropic, Google, OpenRouter and others.
const STATUS_BY_CODE: readonly [RegExp, number][] = [
  [/^[45]\d\d$/, 0],
  [/overloaded|unavailable|capacity/, 503],
  [/insufficient_quota|billing|credit|payment/, 402],
  [/rate_?limit|too_many|resource_exhausted|throttl/, 429],
  [/timeout|deadline/, 504],
  [/authentication|unauthenticated|api_key/, 401],
  [/permission|forbidden|unsupported_country/, 403],
  [/not_found/, 404],
  [/too_large|context_length|context_size|context_window/, 413],
  [/content_filter|content_policy|moderation|invalid|unsupported|bad_request|failed_precondition/, 400],
]

function findStatus(codes: readonly string[]): number | null {
  for (const [format, status] of STATUS_BY_CODE) {
    const code = codes.find((each) => format.test(each))
    if (code !== undefined) return status === 0 ? Number(code) : status
  }
  return null
}
