import { setTimeout as delay } from 'node:timers/promises'
import { assertWhole } from '../flow/crash.ts'
import type { Frame } from '../service.ts'
import type { Caller } from './caller.ts'

const LOOK_MS = 25
const DROPPED = 0.01
const END_MS = 240_000
const ENDS = ['done', 'failed', 'cancelled']

/**
 * Reads the stream of a job to its end, at whatever edge, dropping it now and then; answers the last frame's data.
 * @throws when it has no end, or more than one, or is not done, which are violations
 */
export async function follow(caller: Caller, jobId: string): Promise<Frame['data']> {
  const frames: Frame[] = []
  const end = performance.now() + END_MS
  const isOver = (): boolean => ENDS.includes(frames.at(-1)?.data.status ?? '')
  while (!isOver()) {
    if (performance.now() > end)
      throw caller.violate(
        `the stream of job ${jobId} had no end in ${END_MS / 1000} s, the last at ${frames.at(-1)?.id}`,
      )
    const stream = await caller.open(`/api/v1/jobs/${jobId}/events`, frames.at(-1)?.id ?? '')
    while (stream !== null && !stream.ended) {
      await delay(LOOK_MS)
      if (caller.chance.happens(DROPPED)) break
    }
    stream?.close()
    frames.push(...(stream?.frames ?? []))
    await delay(LOOK_MS)
  }
  const last = frames.at(-1)!.data
  try {
    assertWhole(frames)
  } catch (error) {
    throw caller.violate(
      `the stream of job ${jobId}: ${(error as Error).message}, ${frames.map(({ id }) => id)}`,
    )
  }
  if (last.status !== 'done')
    throw caller.violate(`job ${jobId} ended as ${last.status}: ${JSON.stringify(last.error)}`)
  caller.history.followed.push({ jobId, frames })
  return last
}
