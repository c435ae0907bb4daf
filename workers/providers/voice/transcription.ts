import { Failure, fail } from '../../../sql/errors.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import type { Recording, Transcriber, Transcript, TranscriptionOutcome } from '../../../tasks/voice/ports.ts'
import { type Recognition, requireRecognition } from '../../../tasks/voice/recognition.ts'
import {
  createClients,
  createIdleTimeout,
  createStartOption,
  createTooLargeFailure,
  type IdleTimeout,
  MAX_ANSWER_SIZE,
  NO_STARTS,
  ReportedError,
  toCallFailure,
  Unreadable,
} from '../ai/ai-calls.ts'
import { isDone, parseEvent, readContent } from '../ai/events.ts'
import { createStreamingFile, type OpenAI, type StartOption } from '../ai/openai.ts'
import { findReport, type Report } from '../ai/reports.ts'
import { recordCall } from '../call.ts'
import { describeNetworkError } from '../wait.ts'
import { toProviderLanguage } from './languages.ts'
import { parseTranscript } from './transcripts.ts'

/** Transcribes speech with the providers' endpoints, through the client for OpenAI's protocol. */

// An answer without streaming may take twice as long. Node itself waits 300 s for the headers.
const WHOLE_ANSWER_FACTOR = 2
// Longer than any upload: the client counts from the start of the request, our idle timeout from the last chunk.
const CLIENT_TIMEOUT_MS = 4 * 3600 * 1000

export function createTranscriber({ ai }: Pick<Settings, 'ai'>, starts = NO_STARTS): Transcriber {
  const clientFor = createClients({ ai })
  return {
    transcribe: async (recording, signal, onText) => {
      const { provider, model } = recording
      const client = await clientFor(provider)
      const recognition = requireRecognition(model)
      const idleTimeout = createIdleTimeout(
        ai.timeoutSeconds * (recognition.streams ? 1 : WHOLE_ANSWER_FACTOR),
      )
      const finished = new AbortController()
      const callSignal = AbortSignal.any([signal, idleTimeout.signal, finished.signal])
      const source = createSource(recording.pieces, idleTimeout.restart, callSignal)
      const call: Call = {
        client,
        recording: { ...recording, pieces: source.pieces },
        recognition,
        idleTimeout,
        options: {
          signal: callSignal,
          timeout: CLIENT_TIMEOUT_MS,
          ...createStartOption(starts, provider, signal, idleTimeout),
        },
      }
      try {
        const transcript = await recordCall(
          {
            provider,
            operation: 'transcription',
            url: client.baseURL,
            attributes: { 'gen_ai.request.model': model },
          },
          () => (recognition.streams ? transcribeStreaming(call, onText) : transcribeWhole(call)),
        )
        return { kind: 'transcript', transcript }
      } catch (error) {
        signal.throwIfAborted()
        if (source.failure !== null) throw source.failure.error
        return toFailureOutcome(error, recording, idleTimeout.reason)
      } finally {
        idleTimeout.clear()
        finished.abort()
      }
    },
  }
}

interface Call {
  readonly client: OpenAI
  readonly recording: Recording
  readonly recognition: Recognition
  readonly idleTimeout: IdleTimeout
  readonly options: { readonly signal: AbortSignal; readonly timeout: number } & StartOption
}

/**
 * A recording during its upload. `failure` is the error of reading it, which the client would report as its own; null
 * if reading has not failed.
 */
interface UploadSource {
  readonly pieces: AsyncIterable<Uint8Array>
  readonly failure: { readonly error: unknown } | null
}

function createSource(
  pieces: AsyncIterable<Uint8Array>,
  onSend: () => void,
  signal: AbortSignal,
): UploadSource {
  let failure: UploadSource['failure'] = null
  async function* read(): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of pieces) {
        // Stop here: Node would read the request body to its end even after an early refusal.
        if (signal.aborted) break
        onSend()
        // A copy: Node may still be sending a piece when the next one overwrites its memory.
        yield Uint8Array.from(piece)
      }
    } catch (error) {
      failure = { error }
    }
    // Throw instead of returning: the provider would take a normal end for a complete file.
    if (failure !== null || signal.aborted) throw new Error('The recording was not sent completely')
  }
  return {
    pieces: read(),
    get failure() {
      return failure
    },
  }
}

type Fields = Omit<OpenAI.Audio.TranscriptionCreateParams, 'stream' | 'file'>

/** Returns the form fields other than the file. */
function createFormFields({ recording: { model, language, prompt }, recognition: { format } }: Call): Fields {
  const languageField = language === null ? {} : { language: toProviderLanguage(language) }
  const promptField = prompt === null ? {} : { prompt }
  if (format === 'json') return { model, response_format: format, ...languageField, ...promptField }
  if (format === 'verbose_json')
    return {
      model,
      response_format: format,
      timestamp_granularities: ['segment'],
      ...languageField,
      ...promptField,
    }
  // Diarizing models refuse recordings longer than 30 s without a strategy.
  if (format === 'diarized_json')
    return { model, response_format: format, chunking_strategy: 'auto', ...languageField }
  // Mistral's field is not a list, and excludes `language`
  // (docs.mistral.ai/studio/audio/speech-to-text/transcribe-files).
  const times = { timestamp_granularities: 'segment' } as object
  return { model, ...(language === null ? times : languageField) }
}

/** Creates the form. The file comes last, so that a provider knows all fields when the file arrives. */
async function createForm(
  call: Call,
): Promise<Fields & { file: Awaited<ReturnType<typeof createStreamingFile>> }> {
  const { fileName, mediaType, pieces } = call.recording
  return { ...createFormFields(call), file: await createStreamingFile(pieces, fileName, mediaType) }
}

async function transcribeWhole(call: Call): Promise<Transcript> {
  const { client, options } = call
  const response = await client.audio.transcriptions.create(await createForm(call), options).asResponse()
  return readTranscript(response, call, () => {})
}

async function transcribeStreaming(call: Call, onText: (text: string) => void): Promise<Transcript> {
  const { client, options } = call
  const fields = await createForm(call)
  const pending = client.audio.transcriptions.create({ stream: true, ...fields }, options)
  return readTranscript(await pending.asResponse(), call, onText)
}

/** Reads a transcript in the form that the provider chose: whole, or in pieces. */
async function readTranscript(
  response: Response,
  { idleTimeout }: Call,
  onText: (text: string) => void,
): Promise<Transcript> {
  const content = await readContent(response, idleTimeout.restart)
  if (content.kind === 'json') {
    const report = findReport(content.value)
    if (report !== null) throw new ReportedError(report)
    return parseTranscript(content.value)
  }
  const segments: unknown[] = []
  let size = 0
  for await (const item of content.events) {
    if (isDone(item)) continue
    const event = parseEvent(item) as OpenAI.Audio.TranscriptionStreamEvent | null
    if (event === null) continue
    if (event.type === 'transcript.text.done') return parseTranscript({ segments, ...event })
    if (event.type === 'transcript.text.segment') segments.push(event)
    const text = event.type === 'transcript.text.delta' ? event.delta : event.text
    size += String(text).length
    if (size > MAX_ANSWER_SIZE) throw createTooLargeFailure()
    if (event.type === 'transcript.text.delta') onText(String(text))
  }
  // A connection that closes midway looks like the end of the stream.
  throw new Unreadable('the connection was closed')
}

// Messages of providers for undecodable audio:
// - "The audio file could not be decoded or its format is not supported."
// - "Audio file might be corrupted or unsupported"
// - "This model does not support the format you provided."
// - "Invalid file format. Supported formats: …"
// - "could not process file - is it a valid media file?"
const UNDECODABLE_MESSAGE =
  /\b(audio|file|media)\b.*\b(decod|corrupt|unsupported|not supported)|support the format you|invalid file format|valid media file/i

/** Converts an error of the client, and determines whether the request was certainly free. */
function toFailureOutcome(
  error: unknown,
  { provider, model }: Recording,
  timeoutReason: string | null,
): TranscriptionOutcome {
  // Providers charge neither for refused requests nor for those that were never sent.
  const { status, message } = error as { status?: unknown; message?: unknown }
  const isFree = typeof status === 'number' || (timeoutReason === null && !describeNetworkError(error).sent)
  const isRefusal = status === 400 || status === 415 || status === 422
  if (isRefusal && UNDECODABLE_MESSAGE.test(String(message))) {
    const failure = fail('voice.audio_undecodable', {}, { cause: error })
    return { kind: 'failure', failure, isFree }
  }
  if (error instanceof Failure) return { kind: 'failure', failure: error, isFree: error.retry === 'free' }
  // `hasOutput: false`: an interrupted transcript is discarded, so that a retry is safe.
  const call = {
    provider,
    model,
    hasOutput: false,
    timeoutReason,
    explainRefusal: explainRefusal(String(message)),
  }
  return { kind: 'failure', failure: toCallFailure(error, call), isFree }
}

/** Explains a refused recording; null if only its status is known. */
const explainRefusal =
  (message: string) =>
  ({ status }: Report): string | null => {
    if (status === 413) return 'the file is too large for it'
    if (status !== 400 && status !== 422) return null
    if (/longer than|too long|maximum (length|duration)/i.test(message))
      return 'the recording is too long for the model'
    return /too short|minimum (length|duration)/i.test(message) ? 'the recording is too short' : null
  }
