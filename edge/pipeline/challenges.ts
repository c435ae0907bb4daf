import { type ErrorCode, Failure, fail } from '../../sql/errors.ts'
import { statusOf } from './statuses.ts'

/** The `WWW-Authenticate` challenges of refusals (RFC 6750, section 3). */

/** Every refusal of a missing or invalid credential. */
export const CREDENTIAL_ERRORS = [
  'auth.required',
  'auth.token_expired',
  'auth.token_invalid',
  'auth.key_invalid',
] as const satisfies readonly ErrorCode[]

const CODES: ReadonlySet<ErrorCode> = new Set(CREDENTIAL_ERRORS)

// A challenge needs at least one parameter. Without a credential it must name no error (section 3.1).
const REALM = 'Bearer realm="Millrace"'

/** True if a request has no credential, or an invalid one. */
export function isUnauthenticated(error: unknown): error is Failure {
  return error instanceof Failure && CODES.has(error.code)
}

/** The challenge of a refusal; null if it needs none. */
export function challengeOf({ code, detail, scope }: Failure): string | null {
  if (scope !== undefined) return `${challenge('insufficient_scope', detail)}, scope="${scope}"`
  if (statusOf(code) !== 401) return null
  return CODES.has(code) && code !== 'auth.required' ? challenge('invalid_token', detail) : REALM
}

const challenge = (error: string, description: string): string =>
  `${REALM}, error="${error}", error_description="${description}"`

/** The credential of a caller: an API key, an access token of a session, or none. */
interface Credential {
  readonly key: object | null
  readonly sessionId: string | null
}

/** The failure for a credential that was valid and is no longer: its account, session or key is gone. */
export function lostCredential({ key, sessionId }: Credential): Failure {
  if (key !== null) return fail('auth.key_invalid')
  return fail(sessionId === null ? 'auth.required' : 'auth.token_invalid')
}
