// Calls to the service as the signed-in account: the session is in cookies, which are renewed when they have expired.

/** The final states of a job. */
export const ENDED = new Set(['done', 'failed', 'cancelled'])

/** A response that is not a success; `message` says why. */
export class Refused extends Error {
  constructor(status, detail, code) {
    super(detail)
    this.status = status
    this.code = code
  }
}

/** Calls a route; returns its JSON, or null if it has none. @throws Refused */
export async function call(method, path, { json, form, body } = {}) {
  let answer = await send(method, path, { json, form, body })
  if (answer.status === 401 && (await renew())) answer = await send(method, path, { json, form, body })
  if (answer.status === 401) signedOut()
  const data = answer.status === 204 ? null : await answer.json().catch(() => null)
  if (!answer.ok) throw new Refused(answer.status, data?.detail ?? `The service responded with status ${answer.status}`)
  return data
}

/** Calls a route that a job answers, and waits for the job if the route does not; returns its result. @throws Refused */
export async function completed(method, path, options) {
  const data = await call(method, path, options)
  if (data?.job_id === undefined) return data
  await new Promise((resolve, reject) => {
    const stop = follow(
      `/api/v1/jobs/${data.job_id}/events`,
      {
        status: ({ status, error }) => {
          if (!ENDED.has(status)) return
          stop()
          if (status === 'done') resolve()
          else reject(new Refused(500, error?.detail ?? 'The job was cancelled'))
        },
      },
      (state) => {
        if (typeof state === 'number') reject(new Refused(state, 'The job can no longer be seen'))
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
    throw new Refused(0, 'The service cannot be reached')
  })
}

/** The signed-in account, or null. @throws Refused when that cannot be determined. */
export async function whoAmI() {
  const first = await send('GET', '/api/v1/auth/me', {})
  const answer = first.status === 401 && (await renew()) ? await send('GET', '/api/v1/auth/me', {}) : first
  if (answer.ok) return answer.json()
  if (answer.status === 401) return null
  throw new Refused(answer.status, 'The service is not available')
}

/** `code`: a one-time code or a recovery code, or nothing. @throws Refused, with the code totp_required where one is needed. */
export async function signIn(username, password, code) {
  const factor = code === '' ? {} : /^\d{3} ?\d{3}$/.test(code) ? { totp_code: code } : { recovery_code: code }
  const answer = await send('POST', '/api/v1/auth/token', { form: { username, password, ...factor } })
  if (answer.ok) return
  const data = await answer.json().catch(() => null)
  throw new Refused(answer.status, data?.detail ?? `The service responded with status ${answer.status}`, data?.code)
}

export async function signOut() {
  await send('POST', '/api/v1/auth/logout', {}).catch(() => null)
}

// Without locks (on a page that came neither over TLS nor from this machine), two tabs may renew at once, and one of
// them has to sign in again.
const alone = (work) => navigator.locks?.request('millrace-session', work) ?? work()

/** Exchanges the refresh token, one tab at a time: a tab that waited finds that another has already done it. */
function renew() {
  return alone(async () => {
    if ((await send('GET', '/api/v1/auth/me', {})).ok) return true
    return (await send('POST', '/api/v1/auth/refresh', {})).ok
  })
}

let signedOut = () => {}

/** Called when the session has ended. */
export function onSignedOut(listener) {
  signedOut = listener
}

const BACKOFF_MS = [500, 1000, 2000, 5000]

/**
 * Follows a stream: `handlers`, by event name, receive data and id. The browser reconnects by itself after a lost
 * connection; after a refusal, the stream is reopened once the session has been checked. `onLink` receives `live`,
 * `lost` or, when the stream must not be opened at all, the status.
 */
export function follow(path, handlers, onLink) {
  let source = null
  let failures = 0
  let ended = false
  const open = () => {
    source = new EventSource(path)
    source.onopen = () => {
      failures = 0
      onLink('live')
    }
    for (const [name, handle] of Object.entries(handlers))
      source.addEventListener(name, (event) => handle(JSON.parse(event.data), Number(event.lastEventId)))
    source.onerror = () => {
      if (ended) return
      onLink('lost')
      if (source.readyState === EventSource.CLOSED) setTimeout(again, BACKOFF_MS[Math.min(failures++, BACKOFF_MS.length - 1)])
    }
  }
  const again = async () => {
    if (ended) return
    const probe = await send('HEAD', path, {}).catch(() => null)
    const status = probe?.status === 401 && (await renew().catch(() => false)) ? 200 : (probe?.status ?? 503)
    if (status === 401) signedOut()
    if (status >= 400 && status < 500) return onLink(status)
    open()
  }
  open()
  return () => {
    ended = true
    source.close()
  }
}
