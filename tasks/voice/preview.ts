import { createHash } from 'node:crypto'
import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { addPreviewChunk, beginPreview, endPreview, type Speech, wantedPreview } from '../../sql/voice.ts'
import type { TaskContext } from '../context.ts'
import { defineTask } from '../task.ts'

/** The kind of event that says that a piece is there; its data: `{generation}`. */
export const CHUNK_EVENT = 'chunk'

// A text of 1000 characters at a quarter of the speed is about five minutes, which as MP3 are some 5 MB.
const MOST_BYTES = 32 * 1024 * 1024

/** What a preview is kept under. */
export function digestOf({ provider, model, voice, speed, text }: Speech): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([provider, model, voice, speed, text]))
    .digest()
}

/**
 * Has a preview spoken, which is in `voice_preview` under its digest. Each piece is stored as it comes, and told of by an
 * event once it is. All who want the same preview share one job. An attempt that is cut short leaves a generation that
 * nobody will end; the next one begins its own.
 */
export const preview = defineTask({
  name: 'voice.preview',
  queue: 'voice',
  pool: 'io',
  actor: ({ digest }) => `voice_preview:${digest}`,
  whenBusy: 'join',
  payload: z.strictObject({ digest: z.string().regex(/^[0-9a-f]{64}$/) }),
  result: z.strictObject({ byte_size: z.int() }),
  timeoutSeconds: 600,
  run: async (ctx, payload) => {
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
  },
})

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
