import { fail } from '../../../sql/errors.ts'
import type { Speech } from '../../../sql/voice/previews.ts'
import { isAiProvider } from '../../../tasks/ai/providers.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import type { Speaker } from '../../../tasks/voice/ports.ts'
import {
  createClients,
  createIdleTimeout,
  createStartOption,
  NO_STARTS,
  readJson,
  toCallFailure,
  Unreadable,
} from '../ai/ai-calls.ts'
import type { OpenAI, StartOption } from '../ai/openai.ts'
import { sendAdapted } from '../ai/parameters.ts'
import { startCall } from '../call.ts'

/** Creates a speaker that calls the providers' speech endpoints through the client for OpenAI's protocol. */
export function createSpeaker({ ai }: Pick<Settings, 'ai'>, starts = NO_STARTS): Speaker {
  const clientFor = createClients({ ai })
  return {
    speak: async function* (speech, signal) {
      const { provider, model } = speech
      if (!isAiProvider(provider)) throw fail('voice.provider_missing')
      const client = await clientFor(provider)
      const idleTimeout = createIdleTimeout(ai.timeoutSeconds)
      const endSpan = startCall({ provider, operation: 'speech', url: client.baseURL })
      let hasOutput = false
      let failure: unknown
      try {
        for await (const piece of streamAudio(client, speech, {
          signal: AbortSignal.any([signal, idleTimeout.signal]),
          ...createStartOption(starts, provider, signal, idleTimeout),
        })) {
          idleTimeout.restart()
          if (piece.length === 0) continue
          hasOutput = true
          yield piece
        }
        if (!hasOutput) throw new Unreadable('it sent nothing')
      } catch (error) {
        failure = error
        signal.throwIfAborted()
        throw toCallFailure(error, { provider, model, hasOutput, timeoutReason: idleTimeout.reason })
      } finally {
        endSpan(failure)
        idleTimeout.clear()
      }
    },
  }
}

const keyOf = ({ baseURL }: OpenAI, { provider, model }: Speech): string => `${provider} ${baseURL} ${model}`

type Options = { readonly signal: AbortSignal } & StartOption

async function* streamAudio(client: OpenAI, speech: Speech, options: Options): AsyncIterable<Uint8Array> {
  if (speech.provider === 'mistral') {
    yield await speakWithMistral(client, speech, options)
    return
  }
  const { model, voice, text, speed } = speech
  const response = await sendAdapted(
    {
      key: keyOf(client, speech),
      parameters: { model, voice, input: text, speed, response_format: 'mp3' },
      optional: ['speed'],
    },
    (parameters) => client.audio.speech.create(parameters as never, options) as Promise<Response>,
  )
  // A stand-in may send no content type, but text is certainly not audio.
  if (/^(text\/|application\/json)/i.test(response.headers.get('content-type') ?? ''))
    throw new Unreadable('its answer is not audio')
  yield* (response.body ?? []) as AsyncIterable<Uint8Array>
}

/**
 * Requests speech from Mistral, which returns JSON with base64 audio and has no speed parameter
 * (docs.mistral.ai/studio/audio/text-to-speech).
 */
async function speakWithMistral(client: OpenAI, speech: Speech, options: Options): Promise<Uint8Array> {
  const { model, voice, text } = speech
  const response = await sendAdapted(
    {
      key: keyOf(client, speech),
      parameters: { model, input: text, voice_id: voice, response_format: 'mp3', stream: false },
      optional: ['stream'],
    },
    (body) => client.post('/audio/speech', { body, ...options }).asResponse(),
  )
  const answer = (await readJson(response)) as { readonly audio_data?: unknown } | null
  if (typeof answer?.audio_data !== 'string') throw new Unreadable('its answer is not audio')
  return Buffer.from(answer.audio_data, 'base64')
}
