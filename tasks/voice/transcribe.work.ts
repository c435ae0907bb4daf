import { Failure, fail } from '../../sql/errors.ts'
import {
  addTranscriptionPiece,
  beginTranscription,
  listTranscriptionPieces,
} from '../../sql/voice/transcriptions.ts'
import { createAnswerBuffer } from '../ai/deltas.ts'
import { requireApiKey } from '../ai/keys.ts'
import type { AiProvider } from '../ai/providers.ts'
import type { TaskContext } from '../context.ts'
import { computeRecognitionCost } from './cost.ts'
import { createPart, joinParts, type PlacedPart, separatorAfter } from './parts.ts'
import type { RecognitionUsage, Recording, Transcript } from './ports.ts'
import { findRecording } from './recording.ts'
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
  const { mayBeCut, openNext } = await findRecording(ctx, document_id, model)
  requireApiKey(ctx.settings.ai, provider)
  // Answers of earlier attempts, which have been paid.
  const placed: PlacedPart[] = mayBeCut ? [...(await ctx.db.any(listTranscriptionPieces(id)))] : []
  const shownBefore = placed.length
  for (let isFirst = true; ; isFirst = false) {
    const opened = await openNext(placed.at(-1)?.end ?? 0)
    try {
      const started = await ctx.runFenced((tx) => tx.maybeOne(beginTranscription(id, ctx.job.id)))
      if (started === null) throw fail('voice.transcription_missing')
      if (isFirst && started.shown) restart(ctx, placed.slice(0, shownBefore))
      const { requested_language: language, prompt, created_at } = started
      const recording = { provider, model, language, prompt, ...opened }
      const before = placed.map(({ part }) => part.text).join('')
      const transcript = await transcribeRecording(ctx, recording, separatorAfter(before))
      placed.push({ start: opened.start, end: opened.end, part: createPart(model, transcript) })
      if (opened.isLast)
        return createResult(ctx, payload, { requested_language: language, created_at }, placed)
      // The last piece needs no row, because the job ends with it.
      await ctx.runFenced((tx) => tx.run(addTranscriptionPiece(id, placed.length, placed.at(-1)!)))
    } finally {
      opened.release()
    }
  }
}

/** Voids the text that subscribers have received, and repeats the answers of earlier attempts. */
function restart(ctx: TaskContext, placed: readonly PlacedPart[]): void {
  const timestamp = new Date().toISOString()
  ctx.emit('restart', { timestamp })
  if (placed.length > 0) ctx.emit('chunk', { content: joinParts(placed).text, timestamp })
}

function createResult(
  ctx: TaskContext,
  { transcription_id: id, document_id, provider, model }: TranscribePayload,
  asked: Pick<Transcription, 'requested_language' | 'created_at'>,
  placed: readonly PlacedPart[],
): Transcription {
  const { language, cost, ...joined } = joinParts(placed)
  return {
    id,
    status: 'done',
    job_id: ctx.job.id,
    document_id,
    provider,
    model,
    ...asked,
    ...joined,
    language: language ?? asked.requested_language,
    cost: cost === null ? null : Number(cost),
    error: null,
    finished_at: new Date().toISOString(),
  }
}

const UNKNOWN_USAGE: RecognitionUsage = { inputTokens: null, outputTokens: null, audioSeconds: null }

/** Transcribes a recording and emits the usage of the call, even if it fails. Text begins with the separator. */
async function transcribeRecording(
  ctx: TaskContext,
  recording: Recording,
  separator: string,
): Promise<Transcript> {
  let prefix = separator
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
    outcome = await ctx.providers.transcription.transcribe(recording, ctx.signal, (text) => {
      deltas.push(prefix + text)
      prefix = ''
    })
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
