import { setTimeout as delay } from 'node:timers/promises'
import type { Child } from './children.ts'
import type { StreamsSeen } from './load/streams.ts'
import { readResidentBytes, waitUntilQuiet } from './usage.ts'

/** Waits up to 20 s until every stream has its terminal frame. */
export async function waitForTerminalFrames(readers: Child, streams: number): Promise<StreamsSeen> {
  for (let i = 0; ; i++) {
    const seen = await readers.ask<StreamsSeen>('report')
    if (seen.finished === streams || i === 40) return seen
    await delay(500)
  }
}

/** Checks that every stream received each event of its job once and in order. @throws otherwise. */
export function checkStreams(
  seen: StreamsSeen,
  jobIds: readonly string[],
  expected: ReadonlyMap<string, number>,
): void {
  const wrong = seen.last.filter((last, i) => last !== expected.get(jobIds[i]!)).length
  if (seen.gaps + seen.after + seen.broken + wrong === 0) return
  const what = JSON.stringify({ ...seen, last: undefined })
  throw new Error(`Frames were lost: ${what}, ${wrong} streams with a wrong last frame`)
}

/** Waits until the resident memory has varied by at most 1 % for 3 s, and returns it in bytes. */
export async function waitForStableMemory(pid: number): Promise<number> {
  await waitUntilQuiet()
  const looks: number[] = []
  for (let i = 0; i < 40; i++) {
    looks.push(readResidentBytes(pid))
    const last = looks.slice(-7)
    if (last.length === 7 && Math.max(...last) <= Math.min(...last) * 1.01) break
    await delay(500)
  }
  return looks.at(-1)!
}
