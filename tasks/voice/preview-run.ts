import { fail } from '../../sql/errors.ts'
import { addPreviewChunk, beginPreview, endPreview, wantedPreview } from '../../sql/voice.ts'
import type { TaskContext } from '../context.ts'
import { CHUNK_EVENT } from './preview-event.ts'

// A text of 1000 characters at a quarter of the speed takes about five minutes, or some 5 MB of MP3.
const MAX_BYTES = 32 * 1024 * 1024

/** The work of `voice.preview`. */
export async function run(
  ctx: TaskContext,
  payload: { readonly digest: string },
): Promise<{ byte_size: number }> {
  const digest = Buffer.from(payload.digest, 'hex')
  const wanted = await ctx.db.maybeOne(wantedPreview(digest))
  if (wanted === null) throw fail('voice.preview_missing')
  const { byte_size, ...speech } = wanted
  // An earlier job has made it.
  if (byte_size !== null) return { byte_size }
  ctx.progress('Speaking')
  const begun = await ctx.fenced((tx) => tx.maybeOne(beginPreview(digest)))
  if (begun === null) throw fail('voice.preview_missing')
  const { generation } = begun
  const size = await store(ctx, { digest, generation }, ctx.providers.speech.speak(speech, ctx.signal))
  await ctx.fenced((tx) => tx.run(endPreview(digest, generation, size)))
  return { byte_size: size }
}

interface Place {
  readonly digest: Buffer
  readonly generation: string
}

/** Stores pieces; those that arrive during a write go into the next one together. Returns their total size. */
async function store(ctx: TaskContext, place: Place, pieces: AsyncIterable<Uint8Array>): Promise<number> {
  let waiting: Uint8Array[] = []
  let [size, start, ordinal] = [0, 0, 0]
  let writing = false
  let written: Promise<void> = Promise.resolve()
  const write = async (): Promise<void> => {
    while (waiting.length > 0) {
      const bytes = Buffer.concat(waiting)
      waiting = []
      await ctx.fenced((tx) => tx.run(addPreviewChunk({ ...place, ordinal, start, bytes })))
      ctx.emit(CHUNK_EVENT, { generation: place.generation })
      ordinal++
      start += bytes.length
    }
    writing = false
  }
  try {
    for await (const piece of pieces) {
      size += piece.length
      if (size > MAX_BYTES) throw fail('ai.interrupted', { reason: 'it is too long' })
      waiting.push(piece)
      if (writing) continue
      writing = true
      written = write()
      // Awaited below; after a failed write nothing more is stored.
      written.catch(() => {})
    }
  } catch (error) {
    await written.catch(() => {})
    throw error
  }
  await written
  return size
}
