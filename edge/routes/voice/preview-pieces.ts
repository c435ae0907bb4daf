import { fail } from '../../../sql/errors.ts'
import { findPreview, findPreviewChunk } from '../../../sql/voice/previews.ts'
import { CHUNK_EVENT } from '../../../tasks/voice/preview-event.ts'
import { toJobFailure } from '../../pipeline/answer/responders.ts'
import type { Edge } from '../../pipeline/context.ts'
import type { Hub } from '../../streams/hub.ts'
import { isTerminal, type JobEvent } from '../../streams/job-event.ts'

/** Reads a preview from the table in pieces. The preview is stored, or a job is still storing it. */

export interface StoredPieces {
  readonly digest: Buffer
  /** Generation of the stored pieces; empty until the first piece. */
  generation: string
}

export async function* readStored(
  { db }: Edge,
  { digest, generation }: StoredPieces,
  from: number,
  length: number,
): AsyncGenerator<Uint8Array> {
  for (let offset = from; offset < from + length; ) {
    const chunk = await db.maybeOne(findPreviewChunk(digest, generation, offset))
    if (chunk === null) throw fail('voice.preview_missing')
    const piece = chunk.bytes.subarray(offset - chunk.start, from + length - chunk.start)
    offset += piece.length
    yield piece
  }
}

/** Progress of a job that stores the pieces of a preview. */
export interface PreviewProgress {
  /**
   * Resolves once an event has arrived since the last call.
   * @throws fail('request.incomplete') if the client has disconnected.
   */
  nextChange(): Promise<void>
  /** Generation of the stored pieces; null until the first piece. */
  readonly generation: string | null
  /** The terminal event; null until the job ends. */
  readonly terminalEvent: JobEvent | null
  stop(): void
}

export function watchPreviewProgress(hub: Hub, jobId: string, signal: AbortSignal): PreviewProgress {
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
    nextChange: async () => {
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
    get terminalEvent() {
      return end
    },
    stop,
  }
}

/**
 * Yields the pieces of a preview while its job stores them. Each attempt produces different bytes, so a response that has
 * sent pieces of an earlier attempt cannot continue.
 */
export async function* readLive(
  edge: Edge,
  pieces: StoredPieces,
  job: PreviewProgress,
): AsyncGenerator<Uint8Array> {
  const { digest } = pieces
  let offset = 0
  for (;;) {
    await job.nextChange()
    // A job that has ended has stored all its pieces.
    const { terminalEvent: end, generation } = job
    if (offset > 0 && generation !== pieces.generation) throw createInterruptedError()
    if (end !== null) break
    if (generation === null) continue
    pieces.generation = generation
    for (;;) {
      const chunk = await edge.db.maybeOne(findPreviewChunk(digest, generation, offset))
      if (chunk === null) break
      offset += chunk.bytes.length
      yield chunk.bytes
    }
  }
  if (job.terminalEvent!.status !== 'done') throw toJobFailure(job.terminalEvent!)
  const whole = await edge.db.maybeOne(findPreview(digest))
  if (whole === null || (offset > 0 && whole.generation !== pieces.generation)) throw createInterruptedError()
  pieces.generation = whole.generation
  yield* readStored(edge, pieces, offset, whole.byte_size - offset)
}

const createInterruptedError = () => fail('ai.interrupted', { reason: 'the generation started over' })

export async function* prepend<T>(first: IteratorResult<T>, rest: AsyncGenerator<T>): AsyncGenerator<T> {
  if (first.done !== true) yield first.value
  yield* rest
}
