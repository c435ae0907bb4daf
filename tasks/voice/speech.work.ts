import { Failure, fail } from '../../sql/errors.ts'
import { beginSpeechCall } from '../../sql/voice/speeches.ts'
import type { TaskContext } from '../context.ts'
import { computeSpeechCost } from './speaking.ts'
import { synthesize } from './synthesis.ts'

interface SpeechPayload {
  readonly digest: string
  readonly model: string
}

/** Runs `voice.speech`. */
export async function run(
  ctx: TaskContext,
  { digest: hex, model }: SpeechPayload,
): Promise<{ id: string; byte_size: number }> {
  const digest = Buffer.from(hex, 'hex')
  const size = await synthesize(ctx, digest, async (text, call) => {
    const begun = await ctx.runFenced((tx) => tx.maybeOne(beginSpeechCall(digest, ctx.job.id)))
    if (begun === null) throw fail('voice.preview_missing')
    try {
      await call()
    } catch (error) {
      // Providers do not charge for refused requests. The cost of an interrupted one is unknown.
      const isFree =
        error instanceof Failure &&
        (error.retry === 'free' || ['ai.refused', 'ai.missing_key'].includes(error.code))
      reportUsage(ctx, isFree ? '0' : null, false)
      throw error
    }
    reportUsage(ctx, computeSpeechCost(model, text), true)
  })
  return { id: ctx.job.id, byte_size: size }
}

function reportUsage(ctx: TaskContext, cost: string | null, success: boolean): void {
  const counts = { input_tokens: 0, output_tokens: 0, audio_seconds: 0 }
  ctx.emit('usage', { ...counts, cost, estimated: cost === null, success })
}
