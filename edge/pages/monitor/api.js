// Calls to the service, as whoever has signed in here: the cookies say who, and are renewed when they have run out.

/** The states that a job stays in. */
export const ENDED = new Set(['done', 'failed', 'cancelled'])

/** An answer that is no success; `message` says why in words. */
export class Refused extends Error {
  constructor(status, detail) {
    super(detail)
    this.status = status
  }
}

/** Calls a route; answers its JSON, or null when it has none. @throws Refused */
export async function call(method, path, { json, form, body } = {}) {
  let answer = await send(method, path, { json, form, body })
  if (answer.status === 401 && (await renew())) answer = await send(method, path, { json, form, body })
  if (answer.status === 401) signedOut()
  const data = answer.status === 204 ? null : await answer.json().catch(() => null)
  if (!answer.ok) throw new Refused(answer.status, data?.detail ?? `The service answered ${answer.status}`)
  return data
}

async function send(method, path, { json, form, body }) {
  const init = { method, body: body ?? null, headers: {} }
  if (json !== undefined) {
    init.headers['content-type'] = 'application/json'
    init.body = JSON.stringify(json)
  }
  if (form !== undefined) init.body = new URLSearchParams(form)
  return fetch(path, init).catch(() => {
    throw new Refused(0, 'The service can not be reached')
  })
}

/** The account that has signed in, or null. @throws Refused when that can not be found out. */
export async function whoAmI() {
  const first = await send('GET', '/api/v1/auth/me', {})
  const answer = first.status === 401 && (await renew()) ? await send('GET', '/api/v1/auth/me', {}) : first
  if (answer.ok) return answer.json()
  if (answer.status === 401) return null
  throw new Refused(answer.status, 'The service can not answer')
}

/** @throws Refused */
export async function signIn(username, password) {
  const answer = await send('POST', '/api/v1/auth/token', { form: { username, password } })
  if (answer.ok) return
  const data = await answer.json().catch(() => null)
  throw new Refused(answer.status, data?.detail ?? `The service answered ${answer.status}`)
}

export async function signOut() {
  await send('POST', '/api/v1/auth/logout', {}).catch(() => null)
}

// Where there are no locks (a page that came neither over TLS nor from this machine) two tabs may renew at once, and one
// of them has to sign in again.
const alone = (work) => navigator.locks?.request('millrace-session', work) ?? work()

/** Exchanges the refresh token, one tab at a time: who waited finds that another tab has done it. */
function renew() {
  return alone(async () => {
    if ((await send('GET', '/api/v1/auth/me', {})).ok) return true
    return (await send('POST', '/api/v1/auth/refresh', {})).ok
  })
}

let signedOut = () => {}

/** Called when nobody is signed in any more. */
export function onSignedOut(listener) {
  signedOut = listener
}

const BACKOFF_MS = [500, 1000, 2000, 5000]

/**
 * Follows a stream: `handlers` by the names of events are given data and id. The browser comes back by itself where a
 * connection was lost; where the stream was refused it is opened anew, after the session has been looked at. `onLink`
 * hears `live`, `lost` and, when it must not be opened at all, the status.
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
