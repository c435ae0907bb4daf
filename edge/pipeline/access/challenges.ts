import { type ErrorCode, Failure, fail } from '../../../sql/errors.ts'
import { statusOf } from '../answer/statuses.ts'

/** Builds the `WWW-Authenticate` challenges of failed requests (RFC 6750, section 3). */

/** All errors of a missing or invalid credential. */
export const CREDENTIAL_ERRORS = [
  'auth.required',
  'auth.token_expired',
  'auth.token_invalid',
  'auth.key_invalid',
] as const satisfies readonly ErrorCode[]

const CREDENTIAL_ERROR_CODES: ReadonlySet<ErrorCode> = new Set(CREDENTIAL_ERRORS)

// Names no error, as RFC 6750, section 3.1 requires for requests without a credential. A challenge needs at least one
// parameter.
const BASE_CHALLENGE = 'Bearer realm="Millrace"'

/** True if the error means that the request has no valid credential. */
export function isUnauthenticated(error: unknown): error is Failure {
  return error instanceof Failure && CREDENTIAL_ERROR_CODES.has(error.code)
}

/** Returns the challenge of a failure; null if it needs none. */
export function buildChallenge({ code, detail, scope }: Failure): string | null {
  if (scope !== undefined) return `${formatChallenge('insufficient_scope', detail)}, scope="${scope}"`
  if (statusOf(code) !== 401) return null
  return CREDENTIAL_ERROR_CODES.has(code) && code !== 'auth.required'
    ? formatChallenge('invalid_token', detail)
    : BASE_CHALLENGE
}

const formatChallenge = (error: string, description: string): string =>
  `${BASE_CHALLENGE}, error="${error}", error_description="${description}"`

/** The credential of a caller: an API key, an access token of a session, or none. */
interface Credential {
  readonly key: object | null
  readonly sessionId: string | null
}

/** Returns the failure of a credential that has become invalid, because its account, session or key is gone. */
export function failLostCredential({ key, sessionId }: Credential): Failure {
  if (key !== null) return fail('auth.key_invalid')
  return fail(sessionId === null ? 'auth.required' : 'auth.token_invalid')
}
