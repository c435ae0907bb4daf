// Follows the stream of an answer, and resumes it after a lost connection.

import { ApiError, renewSession, send, signInAgain } from '../parts/api.js'

const BACKOFF_MS = [500, 1000, 2000, 5000]
const MAX_REQUESTS = 4

/**
 * Sends a question, or joins the answer `messageId`, and follows its stream to the end. `on` has functions by event:
 * `connect`, `chunk`, `tool_call`, `restart` and `lost`, which runs while the connection is lost. Resolves to the data of
 * the event `final`; null if the stream had ended before. @throws ApiError
 */
export async function followTurn({ question, messageId = null, signal, on }) {
  const key = randomKey()
  const turn = { messageId, position: null, final: null }
  for (let failures = 0; ; ) {
    const response = await open(turn, { question, key, signal }).catch((error) => {
      if (error.status !== 0 || (turn.messageId === null && failures + 1 >= MAX_REQUESTS)) throw error
      return null
    })
    if (response?.status === 204) return turn.final
    const isOver = response !== null && (await readFrames(response, turn, on, () => (failures = 0)))
    if (isOver) return turn.final
    signal.throwIfAborted()
    on.lost()
    await pause(BACKOFF_MS[Math.min(failures++, BACKOFF_MS.length - 1)], signal)
  }
}

/** Opens the stream. A repeated question has the same key, so that it starts no second turn. */
async function open({ messageId, position }, { question, key, signal }, isRenewed = false) {
  const headers = position === null ? {} : { 'last-event-id': position }
  const response =
    messageId === null
      ? await send('POST', '/api/v1/ai/chat/stream', { json: question, headers: { 'idempotency-key': key }, signal })
      : await send('GET', `/api/v1/ai/chat/stream/${messageId}`, { headers, signal })
  if (response.ok) return response
  if (response.status === 401 && !isRenewed && ((await renewSession()) || (await signInAgain()))) return open({ messageId, position }, { question, key, signal }, true)
  throw new ApiError(response.status, { ...(await response.json().catch(() => null)), requestId: response.headers.get('x-request-id') })
}

/** Reads frames until the stream ends. Returns true if the turn has ended, too. @throws ApiError if the turn failed. */
async function readFrames(response, turn, on, onFrame) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read().catch(() => ({ done: true }))
    if (done) return turn.final !== null
    const frames = (rest + value).split('\n\n')
    rest = frames.pop()
    for (const frame of frames) {
      const { event, id, data } = parseFrame(frame)
      if (event === undefined) continue
      turn.position = id ?? turn.position
      onFrame()
      if (event === 'error') throw new ApiError(502, { detail: data.detail, code: data.code, requestId: response.headers.get('x-request-id') })
      if (event === 'complete') return true
      if (event === 'connect') turn.messageId = data.message_id
      if (event === 'final') turn.final = data
      on[event]?.(data)
    }
  }
}

function parseFrame(text) {
  const fields = new Map(text.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).replace(/^ /, '')]))
  const data = fields.get('data')
  return data === undefined ? {} : { event: fields.get('event'), id: fields.get('id'), data: JSON.parse(data) }
}

/** Waits, but not beyond the time at which the network is back. */
function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    addEventListener('online', resolve, { once: true })
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })
}

// `crypto.randomUUID` needs TLS or localhost.
const randomKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
