import { type Failure, fail } from '../../sql/errors.ts'
import type { Speech } from '../../sql/voice.ts'
import { type AiProvider, isAiProvider, keyName } from '../../tasks/ai/providers.ts'
import type { Settings } from '../../tasks/settings.ts'
import type { Speaker } from '../../tasks/voice/outside.ts'
import { retryAfterOf } from './breaker.ts'
import { clientOf, type OpenAI } from './openai.ts'
import { networkError } from './wait.ts'

/** Speech by the providers' speech endpoints, through the client of OpenAI's protocol. */
export function createSpeaker({ ai }: Pick<Settings, 'ai'>): Speaker {
  const clients = new Map<AiProvider, Promise<OpenAI>>()
  const clientFor = (provider: string): Promise<OpenAI> => {
    if (!isAiProvider(provider)) throw fail('voice.provider_missing')
    const { apiKey, baseUrl } = ai.endpoints[provider]
    if (apiKey === null) throw fail('ai.missing_key', { provider, setting: keyName(provider) })
    const known = clients.get(provider)
    if (known !== undefined) return known
    // Attempts are the job's.
    const made = clientOf({ apiKey, baseUrl }, ai.timeoutSeconds * 1000 + SLACK_MS, 0)
    clients.set(provider, made)
    return made
  }
  return {
    speak: async function* (speech, signal) {
      const client = await clientFor(speech.provider)
      const silence = new AbortController()
      const timer = setTimeout(() => silence.abort(), ai.timeoutSeconds * 1000)
      let begun = false
      try {
        for await (const piece of piecesOf(client, speech, AbortSignal.any([signal, silence.signal]))) {
          timer.refresh()
          if (piece.length === 0) continue
          begun = true
          yield piece
        }
        if (!begun) throw new Unreadable('it sent nothing')
      } catch (error) {
        signal.throwIfAborted()
        const late = silence.signal.aborted ? `it sent nothing for ${ai.timeoutSeconds} s` : null
        throw failureOf(error, speech.provider, begun, late)
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

// The client's own limit must not fire before ours, which tells why.
const SLACK_MS = 5000

/** An answer that is no speech. */
class Unreadable extends Error {}

async function* piecesOf(client: OpenAI, speech: Speech, signal: AbortSignal): AsyncIterable<Uint8Array> {
  if (speech.provider === 'mistral') {
    yield await voxtral(client, speech, signal)
    return
  }
  const { model, voice, text, speed } = speech
  const response = await client.audio.speech.create(
    { model, voice, input: text, speed, response_format: 'mp3' },
    { signal },
  )
  // What stands in for a provider may say nothing of its bytes, but a text is none.
  if (/^(text\/|application\/json)/i.test(response.headers.get('content-type') ?? ''))
    throw new Unreadable('its answer is no sound')
  yield* (response.body ?? []) as AsyncIterable<Uint8Array>
}

/** Mistral answers JSON with all of it in base64, and knows no speed (docs.mistral.ai/studio/audio/text-to-speech). */
async function voxtral(
  client: OpenAI,
  { model, voice, text }: Speech,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const body = { model, input: text, voice_id: voice, response_format: 'mp3', stream: false }
  const answer = await client.post<{ audio_data?: unknown } | null>('/audio/speech', { body, signal })
  if (typeof answer?.audio_data !== 'string') throw new Unreadable('its answer is no sound')
  return Buffer.from(answer.audio_data, 'base64')
}

/** What an error means. Nothing that the provider wrote is in it: that may quote keys and texts. */
function failureOf(error: unknown, provider: string, begun: boolean, late: string | null): Failure {
  const { reason, curable, retryAfter } = reasonOf(error, provider, late)
  if (begun) return fail('ai.interrupted', { reason }, { cause: error })
  const options = retryAfter === null ? {} : { retryAfter }
  return fail(curable ? 'ai.failed' : 'ai.refused', { reason }, { cause: error, ...options })
}

interface Reason {
  readonly reason: string
  /** Whether trying again can help. */
  readonly curable: boolean
  readonly retryAfter: number | null
}

function reasonOf(error: unknown, provider: string, late: string | null): Reason {
  const now = (reason: string): Reason => ({ reason, curable: true, retryAfter: null })
  if (late !== null) return now(late)
  const { status, headers } = error as { status?: unknown; headers?: unknown }
  if (typeof status === 'number') {
    if (status === 429) {
      const header = headers instanceof Headers ? headers.get('retry-after') : null
      return { ...now('it takes no more requests for now'), retryAfter: retryAfterOf(header) }
    }
    if (status === 408 || status === 409 || status >= 500) return now(`HTTP status ${status}`)
    const key = isAiProvider(provider) ? keyName(provider) : 'the key'
    const accepted = status !== 401 && status !== 403
    const reason = accepted ? `it refused the request (HTTP status ${status})` : `it does not accept ${key}`
    return { reason, curable: false, retryAfter: null }
  }
  if (error instanceof Unreadable) return now(error.message)
  const { code } = networkError(error)
  return now(code === 'no answer' ? 'the connection broke' : `the connection failed (${code})`)
}
