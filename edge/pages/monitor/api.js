// Calls the service as the signed-in account. The session is in cookies, and is renewed when it expires.

/** Final statuses of a job. */
export const FINAL_STATUSES = new Set(['done', 'failed', 'cancelled'])

/** A failed call. `message` gives the reason, and `status` is 0 if no response arrived. */
export class ApiError extends Error {
  constructor(status, detail, code) {
    super(detail)
    this.status = status
    this.code = code
  }
}

/** Calls a route. Returns the JSON of its response, or null if it has none. @throws ApiError */
export async function call(method, path, { json, form, body } = {}) {
  let response = await send(method, path, { json, form, body })
  if (response.status === 401 && (await renewSession())) response = await send(method, path, { json, form, body })
  if (response.status === 401) notifySignedOut()
  const data = response.status === 204 ? null : await response.json().catch(() => null)
  if (!response.ok) throw new ApiError(response.status, data?.detail ?? `The service responded with status ${response.status}`)
  return data
}

/**
 * Calls a job-backed route and returns the job's result. If the route responds before the job ends, waits for the job.
 * @throws ApiError
 */
export async function callAndWait(method, path, options) {
  const data = await call(method, path, options)
  if (data?.job_id === undefined) return data
  await new Promise((resolve, reject) => {
    const stop = subscribe(
      `/api/v1/jobs/${data.job_id}/events`,
      {
        status: ({ status, error }) => {
          if (!FINAL_STATUSES.has(status)) return
          stop()
          if (status === 'done') resolve()
          else reject(new ApiError(500, error?.detail ?? 'The job was cancelled'))
        },
      },
      (state) => {
        if (typeof state === 'number') reject(new ApiError(state, 'The job is no longer accessible'))
      },
    )
  })
  return (await call('GET', `/api/v1/jobs/${data.job_id}`)).result
}

async function send(method, path, { json, form, body }) {
  const init = { method, body: body ?? null, headers: {} }
  if (json !== undefined) {
    init.headers['content-type'] = 'application/json'
    init.body = JSON.stringify(json)
  }
  if (form !== undefined) init.body = new URLSearchParams(form)
  return fetch(path, init).catch(() => {
    throw new ApiError(0, 'The service is unreachable')
  })
}

/** Returns the signed-in account; null if there is none. @throws ApiError if the request fails for another reason. */
export async function fetchAccount() {
  const first = await send('GET', '/api/v1/auth/me', {})
  const response = first.status === 401 && (await renewSession()) ? await send('GET', '/api/v1/auth/me', {}) : first
  if (response.ok) return response.json()
  if (response.status === 401) return null
  throw new ApiError(response.status, 'The service is unavailable')
}

/**
 * Signs in. `code` is a one-time code, a recovery code or ''.
 * @throws ApiError with the code `totp_required` or `totp_wrong` if the account requires a second factor.
 */
export async function signIn(username, password, code) {
  const factor = code === '' ? {} : /^\d{3} ?\d{3}$/.test(code.normalize('NFKC').trim()) ? { totp_code: code } : { recovery_code: code }
  const response = await send('POST', '/api/v1/auth/token', { form: { username, password, ...factor } })
  if (response.ok) return
  const data = await response.json().catch(() => null)
  throw new ApiError(response.status, data?.detail ?? `The service responded with status ${response.status}`, data?.code)
}

export async function signOut() {
  await send('POST', '/api/v1/auth/logout', {}).catch(() => null)
}

// Without TLS, browsers have locks only on localhost. Two tabs may then renew concurrently, and one must sign in again.
const withSessionLock = (action) => navigator.locks?.request('millrace-session', action) ?? action()

/**
 * Renews the session with the refresh token, one tab at a time. If a tab waited for another tab, it first checks
 * whether that tab has renewed the session.
 */
function renewSession() {
  return withSessionLock(async () => {
    if ((await send('GET', '/api/v1/auth/me', {})).ok) return true
    return (await send('POST', '/api/v1/auth/refresh', {})).ok
  })
}

let notifySignedOut = () => {}

/** Sets the function to call when the session ends. */
export function onSignedOut(listener) {
  notifySignedOut = listener
}

const BACKOFF_MS = [500, 1000, 2000, 5000]

/**
 * Subscribes to a stream and returns a function that closes it. `handlers` maps event names to functions that receive
 * data and id. The browser reconnects after a lost connection. After a refusal, this function renews the session and
 * reopens the stream, with backoff. `onConnection` receives `live`, `lost` or the 4xx status of a refusal, after which
 * the stream stays closed.
 */
export function subscribe(path, handlers, onConnection) {
  let source = null
  let failures = 0
  let isClosed = false
  const open = () => {
    source = new EventSource(path)
    source.onopen = () => {
      failures = 0
      onConnection('live')
    }
    for (const [name, handle] of Object.entries(handlers))
      source.addEventListener(name, (event) => handle(JSON.parse(event.data), Number(event.lastEventId)))
    source.onerror = () => {
      if (isClosed) return
      onConnection('lost')
      if (source.readyState === EventSource.CLOSED) setTimeout(reopen, BACKOFF_MS[Math.min(failures++, BACKOFF_MS.length - 1)])
    }
  }
  const reopen = async () => {
    if (isClosed) return
    const probe = await send('HEAD', path, {}).catch(() => null)
    const status = probe?.status === 401 && (await renewSession().catch(() => false)) ? 200 : (probe?.status ?? 503)
    if (status === 401) notifySignedOut()
    if (status >= 400 && status < 500) return onConnection(status)
    open()
  }
  open()
  return () => {
    isClosed = true
    source.close()
  }
}
