import { RequestError } from '../client/connection.ts'
import { formatScopes } from './arguments.ts'
import { STATUS } from './io.ts'
import { clean } from './output.ts'

/** Errors of requests as people read them, with advice. */

const CHECK_ADDRESS = 'Check MILLRACE_URL: it is the address of the service, without a path.'

export interface Failure {
  readonly status: number
  readonly lines: readonly string[]
}

export interface FailureContext {
  readonly url: string
  readonly hasKey: boolean
  /** Scopes that an API key needs for the command. */
  readonly scopes: readonly string[]
}

/** Returns the text and exit status of a failed request; null for any other error. */
export function describeFailure(error: unknown, context: FailureContext): Failure | null {
  if (error instanceof RequestError) return describeRefusal(error, context)
  const code = findSystemCode(error)
  return code === null ? null : { status: STATUS.unreachable, lines: describeMissing(code, context) }
}

/** Returns the exit status after an error answer. */
export const statusOf = ({ response }: RequestError): number =>
  response.status < 500 ? STATUS.refused : STATUS.unreachable

function describeRefusal(error: RequestError, context: FailureContext): Failure {
  const { response, problem } = error
  const status = statusOf(error)
  if (problem?.code === undefined)
    return {
      status,
      lines: [`${context.url} answered ${response.status} without an error of Millrace`, CHECK_ADDRESS],
    }
  // The detail of a single problem says the same.
  const fields = (problem.errors?.length === 1 ? [] : (problem.errors ?? [])).map(({ loc, msg }) =>
    clean(`  ${loc.join('.')}: ${msg}`),
  )
  const advice = adviseOn(response, problem.code, context)
  return { status, lines: [clean(`${problem.detail} (${problem.code})`), ...fields, ...advice] }
}

function adviseOn(
  { status, headers }: Response,
  code: string,
  { url, hasKey, scopes }: FailureContext,
): string[] {
  const page = `${url.replace(/\/$/, '')}/account/keys`
  if (status === 401 && !hasKey)
    return [`Set MILLRACE_KEY to an API key with the ${formatScopes(scopes)}. Create one at ${page}.`]
  if (status === 401)
    return [
      `Check MILLRACE_KEY: the service does not accept it. Create an API key with the ${formatScopes(scopes)} at ${page}.`,
    ]
  const missing = /scope="([^"]+)"/.exec(headers.get('www-authenticate') ?? '')?.[1]
  if (status === 403 && missing !== undefined)
    return [`Set MILLRACE_KEY to an API key with the scope ${missing}. Create one at ${page}.`]
  if (code === 'route.missing') return [CHECK_ADDRESS]
  if (status === 429) return ['Try again later: the limit of requests is reached.']
  return status >= 500 ? [`Quote the request ${headers.get('x-request-id') ?? ''} when you report this.`] : []
}

/** Returns the code of the system's error that made `fetch` fail or end; null for any other error. */
function findSystemCode(error: unknown): string | null {
  if (error instanceof DOMException && error.name === 'TimeoutError') return 'ETIMEDOUT'
  if (!(error instanceof TypeError)) return null
  const { cause } = error
  const [first] = cause instanceof AggregateError ? cause.errors : [cause]
  const { code, message } = (first ?? {}) as { readonly code?: string; readonly message?: string }
  return code ?? (error.message === 'fetch failed' ? (message ?? '') : null)
}

function describeMissing(code: string, { url }: FailureContext): string[] {
  switch (code) {
    case 'ECONNREFUSED':
      return [
        `No service answers at ${url}`,
        'Start one with `npm start`, or name its address in MILLRACE_URL or --url.',
      ]
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return [`The host of ${url} is unknown`, 'Check MILLRACE_URL or --url.']
    default:
      return [`${url} can't be reached: ${code}`, 'Check MILLRACE_URL or --url.']
  }
}
