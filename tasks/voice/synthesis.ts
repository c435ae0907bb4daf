import { fail } from '../../sql/errors.ts'
import {
  addPreviewChunk,
  beginPreview,
  completePiece,
  completePreview,
  findRequestedPreview,
} from '../../sql/voice/previews.ts'
import type { TaskContext } from '../context.ts'
import { stripTags } from './mp3.ts'
import { CHUNK_EVENT } from './preview-event.ts'
import { splitSpeech } from './sentences.ts'
import { findSpeakingLimits } from './speaking.ts'

/** Synthesizes stored texts, and stores their MP3 while it arrives. */

// Far above the longest piece: 4,096 characters at a quarter of the normal speed take about twenty minutes, or 20 MB.
const MAX_PIECE_BYTES = 32 * 1024 * 1024

/** Wraps the synthesis of a piece of the text. */
export type WrapCall = (text: string, call: () => Promise<void>) => Promise<void>

/**
 * Synthesizes the text that was requested under a digest, and returns the size of its MP3. Continues after the pieces
 * that earlier attempts have completed.
 */
export async function synthesize(
  ctx: TaskContext,
  digest: Buffer,
  wrapCall: WrapCall = (_, call) => call(),
): Promise<number> {
  const stored = await ctx.db.maybeOne(findRequestedPreview(digest))
  if (stored === null) throw fail('voice.preview_missing')
  const { byte_size, language, ...speech } = stored
  // An earlier job has finished this text.
  if (byte_size !== null) return byte_size
  const texts = splitSpeech(speech.text, findSpeakingLimits(speech.model), language)
  const started = await ctx.runFenced((tx) => tx.maybeOne(beginPreview(digest)))
  if (started === null) throw fail('voice.preview_missing')
  const { generation, spoken } = started
  const writer = new ChunkWriter(ctx, digest, generation, started)
  // Tells readers of the pieces that the generation begins with.
  if (spoken > 0) ctx.emit(CHUNK_EVENT, { generation })
  for (const [index, text] of texts.entries()) {
    if (index < spoken) continue
    if (texts.length === 1) ctx.reportProgress('Synthesizing')
    else ctx.reportProgress('Synthesizing', index, texts.length)
    await wrapCall(text, async () => {
      const audio = ctx.providers.speech.speak({ ...speech, text }, ctx.signal)
      await writer.store(index, texts.length === 1 ? audio : stripTags(audio))
      await ctx.runFenced((tx) => tx.run(completePiece(digest, generation, index + 1)))
    })
  }
  await ctx.runFenced((tx) => tx.run(completePreview(digest, generation, writer.size)))
  return writer.size
}

/** Appends chunks to a generation. */
class ChunkWriter {
  readonly #ctx: TaskContext
  readonly #target: { readonly digest: Buffer; readonly generation: string }
  #ordinal: number
  #start: number

  constructor(
    ctx: TaskContext,
    digest: Buffer,
    generation: string,
    { ordinal, start }: { readonly ordinal: number; readonly start: number },
  ) {
    this.#ctx = ctx
    this.#target = { digest, generation }
    this.#ordinal = ordinal
    this.#start = start
  }

  /** Size of the stored chunks in bytes. */
  get size(): number {
    return this.#start
  }

  /** Stores the audio of a piece. Audio that arrives during a write is stored together by the next one. */
  async store(piece: number, audio: AsyncIterable<Uint8Array>): Promise<void> {
    let pending: Uint8Array[] = []
    let [size, writing] = [0, false]
    let written: Promise<void> = Promise.resolve()
    const write = async (): Promise<void> => {
      while (pending.length > 0) {
        const bytes = Buffer.concat(pending)
        pending = []
        await this.#add(piece, bytes)
      }
      writing = false
    }
    try {
      for await (const bytes of audio) {
        size += bytes.length
        if (size > MAX_PIECE_BYTES) throw fail('ai.interrupted', { reason: 'the audio is too long' })
        pending.push(bytes)
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
  }

  async #add(piece: number, bytes: Buffer): Promise<void> {
    const chunk = { ...this.#target, ordinal: this.#ordinal, piece, start: this.#start, bytes }
    await this.#ctx.runFenced((tx) => tx.run(addPreviewChunk(chunk)))
    this.#ctx.emit(CHUNK_EVENT, { generation: this.#target.generation })
    this.#ordinal++
    this.#start += bytes.length
  }
}
