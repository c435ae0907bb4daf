import { fail } from '../../sql/errors.ts'
import {
  addPreviewChunk,
  beginPreview,
  completePreview,
  findRequestedPreview,
} from '../../sql/voice/previews.ts'
import type { TaskContext } from '../context.ts'
import { CHUNK_EVENT } from './preview-event.ts'

// Far above the longest preview: 1000 characters at a quarter of the normal speed take about five minutes, or 5 MB of
// MP3.
const MAX_PREVIEW_BYTES = 32 * 1024 * 1024

/** Runs `voice.preview`. */
export async function run(
  ctx: TaskContext,
  payload: { readonly digest: string },
): Promise<{ byte_size: number }> {
  const digest = Buffer.from(payload.digest, 'hex')
  const stored = await ctx.db.maybeOne(findRequestedPreview(digest))
  if (stored === null) throw fail('voice.preview_missing')
  const { byte_size, ...speech } = stored
  // An earlier job has finished this preview.
  if (byte_size !== null) return { byte_size }
  ctx.reportProgress('Synthesizing')
  const started = await ctx.runFenced((tx) => tx.maybeOne(beginPreview(digest)))
  if (started === null) throw fail('voice.preview_missing')
  const { generation } = started
  const size = await storePieces(ctx, { digest, generation }, ctx.providers.speech.speak(speech, ctx.signal))
  await ctx.runFenced((tx) => tx.run(completePreview(digest, generation, size)))
  return { byte_size: size }
}

interface GenerationId {
  readonly digest: Buffer
  readonly generation: string
}

/**
 * Stores the pieces and returns their total size in bytes. Pieces that arrive during a write are stored together by the
 * next one.
 */
async function storePieces(
  ctx: TaskContext,
  target: GenerationId,
  pieces: AsyncIterable<Uint8Array>,
): Promise<number> {
  let pending: Uint8Array[] = []
  let [size, start, ordinal] = [0, 0, 0]
  let writing = false
  let written: Promise<void> = Promise.resolve()
  const write = async (): Promise<void> => {
    while (pending.length > 0) {
      const bytes = Buffer.concat(pending)
      pending = []
      await ctx.runFenced((tx) => tx.run(addPreviewChunk({ ...target, ordinal, start, bytes })))
      ctx.emit(CHUNK_EVENT, { generation: target.generation })
      ordinal++
      start += bytes.length
    }
    writing = false
  }
  try {
    for await (const piece of pieces) {
      size += piece.length
      if (size > MAX_PREVIEW_BYTES) throw fail('ai.interrupted', { reason: 'the audio is too long' })
      pending.push(piece)
      if (writing) continue
      writing = true
      written = write()
      // Prevent an unhandled rejection before `written` is awaited below. `writing` stays true after a failed write, so
      // no other write starts.
      written.catch(() => {})
    }
  } catch (error) {
    await written.catch(() => {})
    throw error
  }
  await written
  return size
}
