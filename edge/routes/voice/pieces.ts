import { fail } from '../../../sql/errors.ts'
import { findPreview, previewChunk } from '../../../sql/voice.ts'
import { CHUNK_EVENT } from '../../../tasks/voice/preview-event.ts'
import type { Edge } from '../../pipeline/context.ts'
import { jobFailure } from '../../pipeline/responders.ts'
import type { Hub } from '../../streams/hub.ts'
import { isTerminal, type JobEvent } from '../../streams/job-event.ts'

/** The pieces of a preview, from the table: those already there, and those that a job is storing. */

export interface Place {
  readonly digest: Buffer
  /** Empty until the first piece. */
  generation: string
}

export async function* stored(
  { db }: Edge,
  { digest, generation }: Place,
  from: number,
  length: number,
): AsyncGenerator<Uint8Array> {
  for (let at = from; at < from + length; ) {
    const chunk = await db.maybeOne(previewChunk(digest, generation, at))
    if (chunk === null) throw fail('voice.preview_missing')
    const piece = chunk.bytes.subarray(at - chunk.start, from + length - chunk.start)
    at += piece.length
    yield piece
  }
}

/** News of a job. */
export interface News {
  /** Resolves when there was an event since the last call. @throws fail('request.incomplete') when the client left. */
  changed(): Promise<void>
  /** The generation of the stored pieces; null before the first. */
  readonly generation: string | null
  readonly end: JobEvent | null
  stop(): void
}

export function watch(hub: Hub, jobId: string, signal: AbortSignal): News {
  let generation: string | null = null
  let end: JobEvent | null = null
  let isNew = false
  let wake = (): void => {}
  const stop = hub.watchJob(jobId, 0, (events) => {
    const chunk = events.findLast(({ kind }) => kind === CHUNK_EVENT)
    if (chunk !== undefined) ({ generation } = JSON.parse(chunk.frame) as { generation: string })
    end ??= events.find(isTerminal) ?? null
    isNew = true
    wake()
  })
  signal.addEventListener('abort', () => wake())
  return {
    changed: async () => {
      if (!isNew && !signal.aborted)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      if (signal.aborted) throw fail('request.incomplete')
      isNew = false
    },
    get generation() {
      return generation
    },
    get end() {
      return end
    },
    stop,
  }
}

/**
 * The pieces of a preview while its job stores them. A new attempt makes different bytes, so a response that has sent
 * some of the previous one cannot continue.
 */
export async function* speaking(edge: Edge, place: Place, news: News): AsyncGenerator<Uint8Array> {
  const { digest } = place
  let at = 0
  for (;;) {
    await news.changed()
    // A job that has ended has stored all of its pieces.
    const { end, generation } = news
    if (at > 0 && generation !== place.generation) throw interrupted()
    if (end !== null) break
    if (generation === null) continue
    place.generation = generation
    for (;;) {
      const chunk = await edge.db.maybeOne(previewChunk(digest, generation, at))
      if (chunk === null) break
      at += chunk.bytes.length
      yield chunk.bytes
    }
  }
  if (news.end!.status !== 'done') throw jobFailure(news.end!)
  const whole = await edge.db.maybeOne(findPreview(digest))
  if (whole === null || (at > 0 && whole.generation !== place.generation)) throw interrupted()
  place.generation = whole.generation
  yield* stored(edge, place, at, whole.byte_size - at)
}

const interrupted = () => fail('ai.interrupted', { reason: 'it was started over' })

export async function* after<T>(first: IteratorResult<T>, rest: AsyncGenerator<T>): AsyncGenerator<T> {
  if (first.done !== true) yield first.value
  yield* rest
}
