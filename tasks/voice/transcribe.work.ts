import { findDocumentContent, hasBlob } from '../../sql/documents/blobs.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { beginTranscription } from '../../sql/voice/transcriptions.ts'
import { createAnswerBuffer, toStorable } from '../ai/deltas.ts'
import { type AiProvider, keySettingName } from '../ai/providers.ts'
import type { TaskContext } from '../context.ts'
import { computeRecognitionCost } from './cost.ts'
import type { RecognitionUsage, Recording, Segment, Transcript } from './ports.ts'
import { audioFileNameOf } from './recognition.ts'
import type { Transcription } from './transcription.ts'

interface TranscribePayload {
  readonly transcription_id: string
  readonly document_id: number
  readonly provider: AiProvider
  readonly model: string
  readonly language: string | null
  readonly prompt_sha256: string | null
}

/** Runs `voice.transcribe`. */
export async function run(ctx: TaskContext, payload: TranscribePayload): Promise<Transcription> {
  const { transcription_id: id, document_id, provider, model } = payload
  const audio = await openRecording(ctx, document_id)
  if (ctx.settings.ai.endpoints[provider].apiKey === null)
    throw fail('ai.missing_key', { provider, setting: keySettingName(provider) })
  const started = await ctx.runFenced((tx) => tx.maybeOne(beginTranscription(id, ctx.job.id)))
  if (started === null) throw fail('voice.transcription_missing')
  const { requested_language, prompt, created_at, shown } = started
  if (shown) ctx.emit('restart', { timestamp: new Date().toISOString() })

  const transcript = await transcribeRecording(ctx, {
    provider,
    model,
    language: requested_language,
    prompt,
    ...audio,
  })
  const { text, language, durationSeconds, segments, used } = transcript
  const cost = computeRecognitionCost(model, used)
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
    text: toStorable(text),
    segments: segments.map(toPublicSegment),
  }
}

const toPublicSegment = (one: Segment): Transcription['segments'][number] => ({
  start: one.start,
  end: one.end,
  text: toStorable(one.text),
  speaker: one.speaker && toStorable(one.speaker),
  no_speech_prob: one.noSpeechProb,
  avg_logprob: one.avgLogprob,
  compression_ratio: one.compressionRatio,
})

/**
 * Opens the recording of a document. @throws fail('document.missing'), fail('document.bytes_missing'),
 * fail('voice.not_audio')
 */
async function openRecording(
  ctx: TaskContext,
  documentId: number,
): Promise<Pick<Recording, 'fileName' | 'mediaType' | 'pieces'>> {
  const source = await ctx.db.maybeOne(findDocumentContent(documentId, ctx.job.ownerId))
  if (source === null) throw fail('document.missing')
  const { byte_size: size, media_type: mediaType } = source
  // Checked before the request, because the provider may charge for an interrupted one.
  if (!hasBlob(source) || !(await ctx.blobs.exists(source, size))) throw fail('document.bytes_missing')
  const fileName = audioFileNameOf(mediaType)
  if (fileName === null) throw fail('voice.not_audio', { type: mediaType })
  return { fileName, mediaType, pieces: reportProgress(ctx, ctx.blobs.read(source, 0, size), size) }
}

/** Yields the pieces and reports the number of bytes sent. */
async function* reportProgress(
  ctx: TaskContext,
  pieces: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<Uint8Array> {
  let sent = 0
  for await (const piece of pieces) {
    ctx.reportProgress('Sending the recording', sent, size)
    sent += piece.length
    yield piece
  }
  ctx.reportProgress('Transcribing')
}

const UNKNOWN_USAGE: RecognitionUsage = { inputTokens: null, outputTokens: null, audioSeconds: null }

/** Transcribes a recording and emits the usage of the attempt, even if it fails. */
async function transcribeRecording(ctx: TaskContext, recording: Recording): Promise<Transcript> {
  const deltas = createAnswerBuffer((content) =>
    ctx.emit('chunk', { content, timestamp: new Date().toISOString() }),
  )
  const report = (used: RecognitionUsage, cost: string | null, success: boolean): void =>
    ctx.emit('usage', {
      input_tokens: used.inputTokens ?? 0,
      output_tokens: used.outputTokens ?? 0,
      audio_seconds: used.audioSeconds ?? 0,
      cost,
      // True if both usage and cost are unknown.
      estimated: used === UNKNOWN_USAGE && cost === null,
      success,
    })
  let outcome: Awaited<ReturnType<typeof ctx.providers.transcription.transcribe>>
  try {
    outcome = await ctx.providers.transcription.transcribe(recording, ctx.signal, deltas.push)
  } catch (error) {
    deltas.end()
    // A Failure means that the bytes could not be read, and providers do not charge for an incomplete file. After an
    // abort, the cost is unknown.
    report(UNKNOWN_USAGE, error instanceof Failure ? '0' : null, false)
    throw error
  }
  deltas.end()
  if (outcome.kind === 'failure') {
    report(UNKNOWN_USAGE, outcome.isFree ? '0' : null, false)
    throw outcome.failure
  }
  const { transcript } = outcome
  report(transcript.used, computeRecognitionCost(recording.model, transcript.used), true)
  return transcript
}
