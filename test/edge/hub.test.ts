import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createHub } from '../../edge/streams/hub.ts'
import type { JobEvent } from '../../edge/streams/job-event.ts'
import type { Reader } from '../../sql/reads/reader.ts'
import { until } from '../until.ts'

/** Tests the hub with an in-memory ledger whose reads may return late. */

const JOB_ID = '00000000-0000-4000-8000-000000000001'

/**
 * Creates a ledger with the given number of events per job. With `gated`, each read waits until the test opens its
 * gate.
 */
function createLedger(events: Record<string, number>, gated = false) {
  const gates: (() => void)[] = []
  const readings: number[][] = []
  const reader = {
    texts: async (_: unknown, [ids, cursors]: [string[], number[]]) => {
      const lines = ids.flatMap((id, i) =>
        Array.from({ length: events[id]! - cursors[i]! }, (_, n) => formatLine(id, cursors[i]! + n + 1)),
      )
      readings.push(cursors)
      if (gated) await new Promise<void>((resolve) => gates.push(resolve))
      return lines
    },
  } as unknown as Reader
  const onError = (error: unknown): void => assert.fail(String(error))
  const hub = createHub({ reader, listReader: reader, now: Date.now, visibilityHorizon: Date.now, onError })
  return { hub, readings, gates, events }
}

const formatLine = (id: string, seq: number) =>
  `${id}\t${seq}\tstatus\trunning\t\ttest\ttest.task\t\t{"n":${seq}}`

function createCollector() {
  const seen: number[] = []
  return { seen, push: (events: readonly JobEvent[]) => void seen.push(...events.map(({ seq }) => seq)) }
}

test('a subscriber that joins during a read for others misses no event after its cursor', async () => {
  const { hub, gates } = createLedger({ [JOB_ID]: 12 }, true)
  const early = createCollector()
  hub.watchJob(JOB_ID, 10, early.push)
  await until('the first reading', () => gates.length === 1)
  const late = createCollector()
  hub.watchJob(JOB_ID, 5, late.push)
  gates[0]!()
  await until('the second reading', () => gates.length === 2)
  assert.deepEqual(early.seen, [11, 12])
  assert.deepEqual(late.seen, [])
  gates[1]!()
  await until('all events arrived', () => late.seen.length === 7)
  assert.deepEqual(late.seen, [6, 7, 8, 9, 10, 11, 12])
  assert.deepEqual(early.seen, [11, 12])
  hub.close()
})

test('a burst for many subscribers yields to the event loop between parts and keeps its order', async () => {
  const jobs = Object.fromEntries(
    Array.from({ length: 50 }, (_, i) => [`${JOB_ID.slice(0, -2)}${10 + i}`, 3]),
  )
  const { hub, readings } = createLedger(jobs)
  const SLOW_MS = 1
  let turns = 0
  const count = setInterval(() => turns++, 0)
  const readers = Object.keys(jobs).map((id) => {
    const seen: number[] = []
    hub.watchJob(id, 0, (events) => {
      for (const end = performance.now() + SLOW_MS; performance.now() < end; );
      seen.push(...events.map(({ seq }) => seq))
    })
    return seen
  })
  await until('every subscriber has its events', () => readers.every((seen) => seen.length === 3))
  clearInterval(count)
  assert.ok(readers.every((seen) => seen.join() === '1,2,3'))
  assert.equal(readings.length, 1)
  assert.ok(turns >= 10, `the loop turned ${turns} times in ${50 * SLOW_MS} ms`)
  hub.close()
})

test("waiting for a job's end returns immediately after all waits were stopped", async () => {
  const { hub } = createLedger({ [JOB_ID]: 0 })
  const ends: (JobEvent | null)[] = []
  const wait = () => void hub.waitForTerminal(JOB_ID, 60_000).then((end) => ends.push(end))
  wait()
  hub.stopWaiting()
  wait()
  await turn()
  assert.deepEqual([ends, hub.watcherCount], [[null, null], 0])
  hub.close()
})
