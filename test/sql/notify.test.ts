import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import {
  createPublisher,
  JOB_EVENTS_CHANNEL,
  listen,
  notifyJobChanges,
} from '../../sql/connections/notify.ts'
import type { Database } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { readEventsAfter } from '../../sql/jobs/events.ts'
import { enqueueJobs } from '../../sql/jobs/jobs.ts'
import { createTestDatabase } from '../database.ts'
import { stopSharedServices } from '../services.ts'
import { until } from '../until.ts'
import { buildJobSpec, createLedgerHelp } from './ledger-help.ts'

await stopSharedServices()
const database = await createTestDatabase()
const { url, db, query } = database
const ledger = createLedgerHelp(database)
const received: { readonly payload: string }[] = []
const listener = await listen({
  url,
  applicationName: 'notify-test',
  channels: { [JOB_EVENTS_CHANNEL]: (payload) => void received.push({ payload }) },
  onReconnect: () => {},
  onError: () => {},
})
after(() => listener.close())

/** Creates a publisher. Its database records the time of each statement, and can be made to fail. */
function createTestPublisher() {
  const errors: unknown[] = []
  const statements: number[] = []
  let failing = false
  const counting = {
    ...db,
    run: (query: Parameters<Database['run']>[0]) => {
      statements.push(performance.now())
      return failing ? Promise.reject(new Error('down')) : db.run(query)
    },
  }
  const publisher = createPublisher(counting, (error) => void errors.push(error))
  received.length = 0
  const fail = (value: boolean): void => {
    failing = value
  }
  return { publisher, errors, statements, fail }
}

const createIds = (count: number): string[] => Array.from({ length: count }, () => uuidv7())
const listReceivedLines = (): string[] => received.flatMap(({ payload }) => payload.split('\n'))

describe('a publisher', { concurrency: false }, () => {
  test('sends the first of a burst immediately, and the rest together', async () => {
    const { publisher, statements } = createTestPublisher()
    const [first, ...rest] = createIds(100)
    publisher.notify(first!)
    await turn()
    assert.equal(statements.length, 1)
    await until('the first notification arrives', () => received.length === 1)
    for (const id of rest) publisher.notify(id)
    await publisher.close()
    await until('all notifications arrive', () => listReceivedLines().length === 100)
    assert.deepEqual(listReceivedLines().sort(), [first!, ...rest].sort())
    assert.equal(statements.length, 2)
  })

  test('sends a thousand marks over half a second in few statements, 25 ms apart, without losing any', async () => {
    const { publisher, statements } = createTestPublisher()
    const all = createIds(1000)
    for (const [i, id] of all.entries()) {
      publisher.notify(id)
      if (i % 20 === 19) await delay(10)
    }
    await publisher.close()
    await until('all notifications arrive', () => new Set(listReceivedLines()).size === 1000)
    const gaps = statements.slice(1).map((at, i) => at - statements[i]!)
    // A gap consists of two timers, each of which may fire a millisecond early.
    assert.ok(
      gaps.every((gap) => gap > 22),
      `gaps of ${gaps.join(' ')} ms`,
    )
    assert.ok(statements.length <= 50, `${statements.length} statements`)
  })

  test('names a job once per statement, however often it was marked', async () => {
    const { publisher } = createTestPublisher()
    const id = uuidv7()
    for (let i = 0; i < 500; i++) publisher.notify(id)
    await publisher.close()
    const last = uuidv7()
    await db.run(notifyJobChanges([last]))
    await until('the last notification arrives', () => listReceivedLines().includes(last))
    assert.deepEqual(
      received.map(({ payload }) => payload),
      [id, last],
    )
  })

  test("keeps payloads within NOTIFY's limit, splits many ids, and sends a star for too many", async () => {
    const { publisher, statements } = createTestPublisher()
    for (const id of createIds(9_000)) publisher.notify(id)
    await publisher.close()
    await until('all notifications arrive', () => listReceivedLines().length === 9_000)
    assert.ok(received.every(({ payload }) => Buffer.byteLength(payload) < 8000))
    assert.equal(statements.length, 1)
    received.length = 0
    for (const id of createIds(50_000)) publisher.notify(id)
    await publisher.close()
    await until('the star arrives', () => received.length > 0)
    assert.deepEqual(
      received.map(({ payload }) => payload),
      ['*'],
    )
  })

  test('reports a failed notification, and sends the next one', async () => {
    const { publisher, errors, fail } = createTestPublisher()
    fail(true)
    publisher.notify(uuidv7())
    publisher.notify(uuidv7())
    await until('the failure is reported', () => errors.length === 1)
    fail(false)
    const id = uuidv7()
    publisher.notify(id)
    await until('the next notification arrives', () => received.length === 1)
    assert.deepEqual([listReceivedLines(), errors.length], [[id], 1])
    await publisher.close()
  })

  test('sends marks made during a statement with the next one, also before the close', async () => {
    const { publisher } = createTestPublisher()
    const all = createIds(40)
    for (const id of all) {
      publisher.notify(id)
      await delay(1)
    }
    await publisher.close()
    await until('all notifications arrive', () => new Set(listReceivedLines()).size === 40)
    await publisher.close()
  })
})

describe('a notification', { concurrency: false }, () => {
  const note = (n: number, text = 'x') => ({ n, kind: 'note', data: { n, text } })
  const notify = async (ids: readonly string[], afters?: readonly (number | null)[]): Promise<string[]> => {
    received.length = 0
    await db.run(notifyJobChanges(ids, afters))
    const marker = uuidv7()
    await db.run(notifyJobChanges([marker]))
    await until('the marker arrives', () => listReceivedLines().includes(marker))
    return listReceivedLines().filter((line) => line !== marker)
  }
  const shortOf = (line: string): string => line.split('\t').slice(1, 3).join(' ')

  test('has the events of a job after a number, or else its last event', async () => {
    const { id, attempt } = await ledger.running()
    await ledger.progress(id, attempt, note(1), note(2), note(3))
    assert.deepEqual((await notify([id], [2])).map(shortOf), ['3 note', '4 note'])
    assert.deepEqual((await notify([id])).map(shortOf), ['4 note'])
    const lines = await notify([id], [0])
    assert.deepEqual(
      lines,
      (await query(readEventsAfter.text, [[id], [0]])).map((row) => Object.values(row)[0]),
    )
  })

  test('has the state of a job without events', async () => {
    const job = buildJobSpec()
    await ledger.enqueue(job)
    await until('the addition is announced', () => listReceivedLines().includes(job.id))
    const [line] = await notify([job.id])
    assert.deepEqual(line!.split('\t').slice(0, 4), [job.id, '0', 'status', 'queued'])
  })

  test('names a job whose event is too long, and splits many events into payloads', async () => {
    const { id, attempt } = await ledger.running()
    await ledger.progress(id, attempt, note(1), note(2, 'ä'.repeat(2000)), note(3, 'ä'.repeat(1700)), note(4))
    assert.deepEqual(
      (await notify([id], [1])).map((line) => (line === id ? line : shortOf(line))),
      ['2 note', id, '4 note', '5 note'],
    )
    await ledger.progress(id, attempt, ...Array.from({ length: 30 }, (_, i) => note(5 + i, 'y'.repeat(1000))))
    assert.equal((await notify([id], [5])).filter((line) => line !== id).length, 30)
    assert.ok(received.length > 4)
    await ledger.progress(
      id,
      attempt,
      ...Array.from({ length: 100 }, (_, i) => note(35 + i, 'y'.repeat(1000))),
    )
    const lines = await notify([id], [35])
    assert.deepEqual([lines.length, lines.at(-1)], [100, id], 'the last lines are only the id')
    assert.ok(received.every(({ payload }) => Buffer.byteLength(payload) < 8000))
  })
})

describe('jobs that are added', { concurrency: false }, () => {
  test('are announced by their ids, in the commit that adds them', async () => {
    received.length = 0
    const specs = Array.from({ length: 450 }, () => buildJobSpec())
    await db.any(enqueueJobs(specs, 0))
    await until('all are announced', () => received.length === 3)
    assert.deepEqual(received.map(({ payload }) => payload.split('\n').length).sort(), [200, 200, 50])
    assert.deepEqual(listReceivedLines().sort(), specs.map(({ id }) => id).sort())
  })

  test('are announced if they replace one, and not if they join one', async () => {
    const [first, replacing, joining] = (['wait', 'replace', 'join'] as const).map((when_busy) =>
      buildJobSpec({ actor: 'announced', when_busy }),
    )
    received.length = 0
    await ledger.enqueue(first!)
    await until('the first job is announced', () => received.length > 0)
    received.length = 0
    await ledger.enqueue(joining!)
    await ledger.enqueue(replacing!)
    await until('the changed job is announced', () => received.length > 0)
    assert.deepEqual(listReceivedLines(), [first!.id])
  })
})

/** Creates a publisher with a mocked clock. `after` advances the clock and returns the number of statements so far. */
function createClockedPublisher(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  let sent = 0
  const db = { run: () => Promise.resolve(++sent) } as unknown as Database
  const publisher = createPublisher(db, (error) => assert.fail(String(error)))
  const after = async (ms: number): Promise<number> => {
    t.mock.timers.tick(ms)
    await turn()
    return sent
  }
  return { publisher, after, sent: () => sent }
}

test('lets a statement of the caller notify, at most every 100 ms', async (t) => {
  const { publisher, after, sent } = createClockedPublisher(t)
  assert.equal(publisher.claimNotify(), true, 'nothing is under way')
  assert.equal(publisher.claimNotify(), false, 'once per burst')
  publisher.notify('a')
  publisher.notify('b')
  await turn()
  assert.deepEqual([sent(), await after(2), await after(22), await after(1)], [0, 0, 0, 1])
  await after(2)
  await after(72)
  assert.equal(publisher.claimNotify(), false, 'within 100 ms of the last')
  await after(1)
  assert.equal(publisher.claimNotify(), true)
})

test('sends chunks of streamed answers within 2 ms of the last, and others within 25 ms', async (t) => {
  const { publisher, after, sent } = createClockedPublisher(t)
  publisher.notify('a')
  await turn()
  assert.equal(sent(), 1)
  publisher.notify('b', 'soon')
  assert.deepEqual([await after(1), await after(1)], [1, 2])
  publisher.notify('c')
  assert.deepEqual([await after(2), await after(22), await after(1)], [2, 2, 3])
  publisher.notify('d')
  assert.equal(await after(10), 3)
  publisher.notify('e', 'soon')
  assert.equal(await after(0), 4)
})
