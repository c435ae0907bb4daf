// Calls the service as the signed-in account. The session is in cookies, and is renewed when it expires.

/**
 * A failed call. `message` gives the reason, `code` the service's word for it, `errors` the invalid fields, and `status`
 * is 0 if no response arrived.
 */
export class ApiError extends Error {
  constructor(status, { detail, code, errors, requestId } = {}) {
    super(detail ?? `The service responded with status ${status}`)
    Object.assign(this, { status, code, errors: errors ?? [], requestId })
  }
}

const listeners = { signedOut: async () => false, proof: async () => null }
let signingIn = null

/** Sets the function that signs in again when the session has ended. It resolves to true if the page can continue. */
export function onSignedOut(listener) {
  listeners.signedOut = listener
}

/** Signs in again, once for all calls that wait for it. Resolves to true if the calls can be repeated. */
export function signInAgain() {
  signingIn ??= listeners.signedOut().finally(() => {
    signingIn = null
  })
  return signingIn
}

/** Sets the function that asks for the password when a call requires it. It resolves to the fields, or null to give up. */
export function onProofRequired(listener) {
  listeners.proof = listener
}

/**
 * Calls a route. Returns the JSON of its response, or null if it has none. If the route requires a proof of identity,
 * asks for it and repeats the call. @throws ApiError
 */
export async function call(method, path, options = {}) {
  return (await request(method, path, options)).data
}

async function request(method, path, options) {
  let response = await send(method, path, options)
  if (response.status === 401 && (await renewSession())) response = await send(method, path, options)
  if (response.status === 401 && (await signInAgain())) response = await send(method, path, options)
  const data = response.status === 204 ? null : await response.json().catch(() => null)
  if (response.ok) return { data, headers: response.headers }
  const error = new ApiError(response.status, { ...data, requestId: response.headers.get('x-request-id') })
  const proof = PROOF_CODES.has(error.code) && options.isProven !== true ? await listeners.proof(error) : null
  if (proof === null) throw error
  return request(method, path, { ...options, json: { ...options.json, ...proof } })
}

// A wrong password asks again, with the reason.
const PROOF_CODES = new Set(['auth.proof_required', 'account.proof_wrong'])

/**
 * Reads one page of a list. Returns its `items`, the `next` path or null, and the `total` if the service counts it.
 * @throws ApiError
 */
export async function readList(path) {
  const { data, headers } = await request('GET', path, {})
  if (Array.isArray(data)) return { items: data, next: /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1] ?? null, total: null, data }
  const items = Object.values(data).find(Array.isArray) ?? []
  const next = data.next ? withQuery(path, { cursor: data.next }) : null
  return { items, next, total: data.total ?? null, data }
}

/** Sets query parameters of a path, and repeats those with an array. Removes those that are null, undefined or ''. */
export function withQuery(path, values) {
  const [base, query] = path.split('?')
  const params = new URLSearchParams(query)
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === '' || Array.isArray(value)) params.delete(name)
    else params.set(name, value)
    if (Array.isArray(value)) for (const one of value) params.append(name, one)
  }
  return params.size === 0 ? base : `${base}?${params}`
}

let isLeaving = false
addEventListener('pagehide', () => (isLeaving = true))
addEventListener('pageshow', () => (isLeaving = false))

/** Sends a request. `json`, `form` (URL-encoded) or `body` is its body. @throws ApiError with the status 0. */
export async function send(method, path, { json, form, body, headers = {}, signal } = {}) {
  const init = { method, body: body ?? null, headers: { ...headers }, signal: signal ?? null, keepalive: isLeaving }
  if (json !== undefined) {
    init.headers['content-type'] = 'application/json'
    init.body = JSON.stringify(json)
  }
  if (form !== undefined) init.body = new URLSearchParams(form)
  return fetch(path, init).catch((error) => {
    if (error.name === 'AbortError') throw error
    throw new ApiError(0, { detail: 'The service is unreachable' })
  })
}

let signInWays = null

/**
 * Reads the ways to sign in and the signed-in account, which is null if there is none. It never renews the session.
 * @throws ApiError if the request fails for another reason than a missing session.
 */
async function readSignInWays() {
  const response = await send('GET', '/api/v1/auth/sign-in')
  if (response.ok) return (signInWays = await response.json())
  if (response.status === 401) return { account: null, can_refresh: false }
  throw new ApiError(response.status, { detail: 'The service is unavailable', requestId: response.headers.get('x-request-id') })
}

/** Returns the ways to sign in, such as `registration` and the rules of passwords. Reads them once. @throws ApiError */
export const fetchSignInWays = async () => signInWays ?? readSignInWays()

/** Returns the signed-in account; null if there is none. @throws ApiError if the request fails for another reason. */
export async function fetchAccount() {
  const first = await readSignInWays()
  if (first.account !== null || !first.can_refresh) return first.account
  return (await renewSession()) ? (await readSignInWays()).account : null
}

/** Returns the sign-in parameters for a code. Six digits mean a one-time code, anything else means a recovery code. */
export function factorOf(code) {
  if (code.trim() === '') return {}
  return /^\d{3} ?\d{3}$/.test(code.normalize('NFKC').trim()) ? { totp_code: code } : { recovery_code: code.trim() }
}

export async function signOut() {
  await send('POST', '/api/v1/auth/logout').catch(() => null)
}

// Without TLS, browsers have locks only on localhost. Two tabs may then renew concurrently, and one must sign in again.
const withSessionLock = (action) => navigator.locks?.request('millrace-session', action) ?? action()

/**
 * Renews the session with the refresh token, one tab at a time. If a tab waited for another tab, it first checks
 * whether that tab has renewed the session.
 */
export function renewSession() {
  return withSessionLock(async () => {
    const { account, can_refresh } = await readSignInWays()
    if (account !== null) return true
    return can_refresh && (await send('POST', '/api/v1/auth/refresh')).ok
  })
}
