import { fail } from '../../sql/errors.ts'
import { addPreviewChunk, beginPreview, endPreview, wantedPreview } from '../../sql/voice.ts'
import type { TaskContext } from '../context.ts'
import { CHUNK_EVENT } from './preview-event.ts'

// A text of 1000 characters at a quarter of the speed is about five minutes, which as MP3 are some 5 MB.
const MOST_BYTES = 32 * 1024 * 1024

/** The work of `voice.preview`. */
export async function run(
  ctx: TaskContext,
  payload: { readonly digest: string },
): Promise<{ byte_size: number }> {
  const digest = Buffer.from(payload.digest, 'hex')
  const wanted = await ctx.db.maybeOne(wantedPreview(digest))
  if (wanted === null) throw fail('voice.preview_missing')
  const { byte_size, ...speech } = wanted
  // The job before this one has made it.
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

/** Stores pieces; those that come while one is written go together into the next. Answers how many bytes they have. */
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
      if (size > MOST_BYTES) throw fail('ai.interrupted', { reason: 'it does not end' })
      waiting.push(piece)
      if (writing) continue
      writing = true
      written = write()
      // It is waited for below; what comes meanwhile is not stored any more.
      written.catch(() => {})
    }
  } catch (error) {
    await written.catch(() => {})
    throw error
  }
  await written
  return size
}
