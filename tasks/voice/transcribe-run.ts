import { documentContent, hasBlob } from '../../sql/blobs.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { beginTranscription } from '../../sql/voice/transcriptions.ts'
import { createDeltas, storable } from '../ai/deltas.ts'
import { keyName } from '../ai/providers.ts'
import type { TaskContext } from '../context.ts'
import { recognitionCost } from './cost.ts'
import type { RecognitionUsage, Recording, Transcript } from './ports.ts'
import { audioName } from './recognition.ts'
import type { TranscribePayload } from './transcribe.ts'
import type { Transcription } from './transcription.ts'

/** The work of `voice.transcribe`. */
export async function run(ctx: TaskContext, payload: TranscribePayload): Promise<Transcription> {
  const { transcription_id: id, document_id, provider, model } = payload
  const audio = await audioOf(ctx, document_id)
  if (ctx.settings.ai.endpoints[provider].apiKey === null)
    throw fail('ai.missing_key', { provider, setting: keyName(provider) })
  const begun = await ctx.fenced((tx) => tx.maybeOne(beginTranscription(id, ctx.job.id)))
  if (begun === null) throw fail('voice.transcription_missing')
  const { requested_language, prompt, created_at, shown } = begun
  if (shown) ctx.emit('restart', { timestamp: new Date().toISOString() })

  const transcript = await heard(ctx, { provider, model, language: requested_language, prompt, ...audio })
  const { text, language, durationSeconds, segments, used } = transcript
  const cost = recognitionCost(model, used)
  return {
    id,
    status: 'done',
    job_id: ctx.job.id,
    document_id,
    provider,
    model,
    requested_language,
    language: language ?? requested_language,
    duration_seconds: durationSeconds,
    usage: {
      input_tokens: used.inputTokens,
      output_tokens: used.outputTokens,
      audio_seconds: used.audioSeconds,
    },
    cost: cost === null ? null : Number(cost),
    error: null,
    created_at,
    completed_at: new Date().toISOString(),
    text: storable(text),
    segments: segments.map((one) => ({
      ...one,
      text: storable(one.text),
      speaker: one.speaker && storable(one.speaker),
    })),
  }
}

/** The bytes of the recording. @throws fail('document.missing'), fail('document.bytes_missing'), fail('voice.not_audio') */
async function audioOf(
  ctx: TaskContext,
  documentId: number,
): Promise<Pick<Recording, 'fileName' | 'mediaType' | 'pieces'>> {
  const source = await ctx.db.maybeOne(documentContent(documentId, ctx.job.ownerId))
  if (source === null) throw fail('document.missing')
  const { byte_size: size, media_type: mediaType } = source
  // Found out before the request: one that breaks off for want of bytes may cost.
  if (!hasBlob(source) || !(await ctx.blobs.exists(source, size))) throw fail('document.bytes_missing')
  const fileName = audioName(mediaType)
  if (fileName === null) throw fail('voice.not_audio', { type: mediaType })
  return { fileName, mediaType, pieces: sending(ctx, ctx.blobs.read(source, 0, size), size) }
}

/** Passes pieces on, and shows how many bytes of them the provider has taken. */
async function* sending(
  ctx: TaskContext,
  pieces: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<Uint8Array> {
  let sent = 0
  for await (const piece of pieces) {
    ctx.progress('Sending the recording', sent, size)
    sent += piece.length
    yield piece
  }
  ctx.progress('Transcribing')
}

const UNKNOWN: RecognitionUsage = { inputTokens: null, outputTokens: null, audioSeconds: null }

/** Asks the provider, and emits what that has used, however it ends. */
async function heard(ctx: TaskContext, recording: Recording): Promise<Transcript> {
  const deltas = createDeltas((content) =>
    ctx.emit('chunk', { content, timestamp: new Date().toISOString() }),
  )
  const report = (used: RecognitionUsage, cost: string | null, success: boolean): void =>
    ctx.emit('usage', {
      input_tokens: used.inputTokens ?? 0,
      output_tokens: used.outputTokens ?? 0,
      audio_seconds: used.audioSeconds ?? 0,
      cost,
      // Nobody has told of it.
      estimated: used === UNKNOWN && cost === null,
      success,
    })
  let outcome: Awaited<ReturnType<typeof ctx.providers.transcription.transcribe>>
  try {
    outcome = await ctx.providers.transcription.transcribe(recording, ctx.signal, deltas.push)
  } catch (error) {
    deltas.end()
    // A failure is one of the bytes: nobody transcribes half a file. After an abort nobody knows.
    report(UNKNOWN, error instanceof Failure ? '0' : null, false)
    throw error
  }
  deltas.end()
  if (outcome.kind === 'failure') {
    report(UNKNOWN, outcome.isFree ? '0' : null, false)
    throw outcome.failure
  }
  const { transcript } = outcome
  report(transcript.used, recognitionCost(recording.model, transcript.used), true)
  return transcript
}
