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

/** Creates a hub that reads each job's state with this number. */
function createStates(seq: number) {
  const reads: string[][] = []
  const reader = {
    texts: async (_: unknown, [ids]: [string[]]) => {
      reads.push(ids)
      return ids.map((id) => formatLine(id, seq))
    },
  } as unknown as Reader
  const onError = (error: unknown): void => assert.fail(String(error))
  const hub = createHub({ reader, listReader: reader, now: Date.now, visibilityHorizon: Date.now, onError })
  return { hub, reads }
}

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

const notification = (...seqs: readonly number[]): string =>
  seqs.map((seq) => formatLine(JOB_ID, seq)).join('\n')

test('events of a notification that continue a cursor need no read', async () => {
  const { hub, readings, events } = createLedger({ [JOB_ID]: 1 })
  const { seen, push } = createCollector()
  hub.watchJob(JOB_ID, 0, push)
  await until('the first event', () => seen.length === 1)
  events[JOB_ID] = 4
  hub.handleNotification(notification(2, 3))
  hub.handleNotification(notification(3, 4))
  await until('the others', () => seen.length === 4)
  assert.deepEqual([seen, readings], [[1, 2, 3, 4], [[0]]])
  hub.close()
})

for (const [name, payload] of [
  ['that follow a gap', notification(3, 4)],
  ['around a gap', notification(2, 4)],
  ['of which one was too long', `${notification(2)}\n${JOB_ID}\n${notification(4)}`],
  ['that are only announced', JOB_ID],
] as const)
  test(`events ${name} are read, each once and in order`, async () => {
    const { hub, readings, events } = createLedger({ [JOB_ID]: 1 })
    const { seen, push } = createCollector()
    hub.watchJob(JOB_ID, 0, push)
    await until('the first event', () => seen.length === 1)
    events[JOB_ID] = 4
    hub.handleNotification(payload)
    await until('the others', () => seen.length === 4)
    assert.deepEqual([seen, readings.length], [[1, 2, 3, 4], 2])
    hub.close()
  })

test('events that arrive during a read are delivered once', async () => {
  const { hub, gates, events } = createLedger({ [JOB_ID]: 2 }, true)
  const { seen, push } = createCollector()
  hub.watchJob(JOB_ID, 0, push)
  await until('the read', () => gates.length === 1)
  hub.handleNotification(notification(1, 2))
  events[JOB_ID] = 3
  hub.handleNotification(notification(3))
  gates[0]!()
  await until('all events', () => seen.length === 3)
  await turn()
  assert.deepEqual([seen, gates.length], [[1, 2, 3], 1])
  hub.close()
})

test('watchers of all jobs get the last state of a notification, and read it after another event', async () => {
  const states: string[] = []
  const { hub, reads } = createStates(9)
  hub.watchAll((all) => void states.push(...all.map(({ jobId, seq }) => `${jobId.slice(-1)}:${seq}`)))
  const other = `${JOB_ID.slice(0, -1)}2`
  hub.handleNotification(`${notification(1, 2)}\n${formatLine(other, 1)}`)
  hub.handleNotification(notification(2))
  assert.deepEqual(states, ['1:2', '2:1'])
  hub.handleNotification(formatLine(other, 2).replace('status\trunning', 'chunk\t'))
  await until('the read', () => states.length === 3)
  assert.deepEqual([states[2], reads], ['2:9', [[other]]])
  hub.close()
})

test('watchers of all jobs read a job that is only named after 25 ms, unless its line arrives', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { hub, reads } = createStates(0)
  const states: string[] = []
  hub.watchAll((all) => void states.push(...all.map(({ jobId, seq }) => `${jobId.slice(-1)}:${seq}`)))
  const other = `${JOB_ID.slice(0, -1)}2`
  hub.handleNotification(`${JOB_ID}\n${other}`)
  t.mock.timers.tick(24)
  await turn()
  hub.handleNotification(formatLine(other, 1))
  assert.deepEqual([states, reads], [['2:1'], []])
  t.mock.timers.tick(1)
  await turn()
  assert.deepEqual([states, reads], [['2:1', '1:0'], [[JOB_ID]]])
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
