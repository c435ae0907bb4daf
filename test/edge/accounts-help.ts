import assert from 'node:assert/strict'
import { type Account, type Answered, type Api, createEmail, getSharedEdge, PASSWORD } from './harness.ts'

export interface Cast {
  readonly admin: Account
  readonly moderator: Account
  readonly user: Account
  /** Adds an account with the role user. */
  newcomer(): Promise<Account>
}

/** Creates one account of each role on an empty database. */
export async function createCast(api: Api): Promise<Cast> {
  let count = 0
  const admin = await api.register('admin@example.com')
  return createCastBelow(api, admin, (name) => `${name}${name === 'user' ? ++count : ''}@example.com`)
}

/** Returns the shared edge with one account of each role. Do not change the admin, because all test files share it. */
export async function getSharedCast(): Promise<Awaited<ReturnType<typeof getSharedEdge>> & Cast> {
  const shared = await getSharedEdge()
  return { ...shared, ...(await createCastBelow(shared.api, shared.admin)) }
}

/** Combines an existing admin with new accounts of the other roles. */
async function createCastBelow(
  api: Api,
  admin: Account,
  address: (name: string) => string = createEmail,
): Promise<Cast> {
  const newcomer = (): Promise<Account> => api.register(address('user'))
  const moderator = await api.register(address('moderator'))
  const promoted = await api.call('PATCH', `/api/v1/auth/users/${moderator.id}/role?role=moderator`, {
    token: admin.token,
  })
  assert.equal(promoted.status, 200)
  return { admin, moderator, user: await newcomer(), newcomer }
}

export const logIn = (api: Api, username: string, password = PASSWORD): Promise<Answered> =>
  api.post('/api/v1/auth/token', { form: { username, password } })

export const refreshSession = (api: Api, token: string): Promise<Answered> =>
  api.post('/api/v1/auth/refresh', { headers: { cookie: `millrace_refresh=${token}` } })

export const getMe = (api: Api, token: string): Promise<Answered> => api.get('/api/v1/auth/me', { token })

/** Reads the session id from an access token. */
export function sessionIdOf(token: string): string {
  return JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()).sid
}

export const TOKEN_INVALID = 'The access token is invalid, or its session has ended'
export const KEY_INVALID = 'The API key is unknown, expired or revoked'
const INVALID_CREDENTIAL_CODES = ['auth.token_expired', 'auth.token_invalid', 'auth.key_invalid']

/** Asserts that a 401 names its cause if a credential was sent (RFC 6750, section 3.1). */
export function assertChallenge({ headers, json }: Answered, what?: string): void {
  const cause = INVALID_CREDENTIAL_CODES.includes(json.code)
    ? `, error="invalid_token", error_description="${json.detail}"`
    : ''
  assert.equal(headers['www-authenticate'], `Bearer realm="Millrace"${cause}`, what)
}

export function assertRefused(answer: Answered, status: number, detail: string, what?: string): void {
  const { code, ...problem } = answer.json
  assert.deepEqual([answer.status, problem], [status, { detail }], what)
  assert.match(code, /^[a-z_]+(\.[a-z_]+)?$/, what)
  if (status === 401) assertChallenge(answer, what)
  else if (code !== 'auth.scope') assert.equal(answer.headers['www-authenticate'], undefined, what)
  assert.deepEqual(answer.cookies, [], what)
}
