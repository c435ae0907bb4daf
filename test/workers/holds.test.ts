import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Queries } from '../../sql/db.ts'
import { createHolds } from '../../workers/holds.ts'
import { until } from '../until.ts'
import { log } from './parts.ts'

/** What a worker knows of the jobs that it holds, at a time that the test sets; timers run by themselves. */

function holdsAt(fails: () => boolean = () => false) {
  const clock = { ms: 0 }
  const dropped: string[] = []
  let lates = 0
  const db = {
    run: async ({ values }: { values: readonly unknown[] }) => {
      if (fails()) throw new Error('down')
      dropped.push(...(values[0] as string[]))
    },
  } as unknown as Queries
  const holds = createHolds({ db, log, onLate: () => void lates++, now: () => clock.ms })
  const spent = (): Promise<readonly string[]> => holds.taking(async (ids) => ids)
  return { clock, holds, dropped, spent, lates: () => lates }
}
const hold = (id: string) => ({ id, since: `since ${id}` })

test('a hold is over when all of its jobs are settled, and the next take is told once', async () => {
  const { holds, spent } = holdsAt()
  holds.took(hold('1'), ['a', 'b'])
  holds.took(hold('2'), ['c'])
  assert.deepEqual(['a', 'c', 'x'].map(holds.since), ['since 1', 'since 2', null])
  holds.settle('a')
  holds.settle('a')
  holds.settle('x')
  assert.deepEqual([holds.since('a'), await spent()], [null, []])
  holds.settle('b')
  holds.settle('c')
  assert.deepEqual([await spent(), await spent()], [['1', '2'], []])
})

test('a take that fails has not said which holds are over', async () => {
  const { holds, spent } = holdsAt()
  holds.took(hold('1'), ['a'])
  holds.settle('a')
  await assert.rejects(holds.taking(() => Promise.reject(new Error('down'))))
  assert.deepEqual(await spent(), ['1'])
})

test('jobs that are held for long are named, in the order in which they were taken', async () => {
  const { clock, holds, lates } = holdsAt()
  holds.took(hold('1'), ['a', 'b'])
  clock.ms = 60
  holds.took(hold('2'), ['c'])
  assert.deepEqual(holds.late(), [])
  clock.ms = 100
  assert.deepEqual(holds.late(), ['a', 'b'])
  await until('somebody is told', () => lates() > 0)
  holds.settle('a')
  clock.ms = 1000
  assert.deepEqual(holds.late(), ['b', 'c'])
  for (const id of ['b', 'c']) holds.settle(id)
  await holds.drop()
})

test('without a take, holds that are over are removed by themselves, however often it takes', async () => {
  let failures = 2
  const { holds, dropped, spent } = holdsAt(() => failures-- > 0)
  holds.took(hold('1'), ['a'])
  holds.settle('a')
  await until('it is removed', () => dropped.length > 0)
  assert.deepEqual([dropped, failures, await spent()], [['1'], -1, []])
})

test('during a take they wait for the next one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { holds, dropped, spent } = holdsAt()
  holds.took(hold('1'), ['a'])
  let end = (): void => {}
  const take = holds.taking(() => new Promise<void>((resolve) => (end = resolve)))
  holds.settle('a')
  for (let looks = 0; looks < 5; looks++) {
    t.mock.timers.tick(50)
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.deepEqual(dropped, [])
  end()
  await take
  assert.deepEqual(await spent(), ['1'])
})

test('a hold whose take was never answered is let go, once its answer can not come any more', async () => {
  const { holds, spent } = holdsAt()
  holds.took(hold('1'), ['a'])
  let end = (): void => {}
  const take = holds.taking(() => new Promise<void>((resolve) => (end = resolve)))
  for (const _ of [1, 2, 3]) holds.reconcile(['1', '2'])
  end()
  await take
  assert.deepEqual(await spent(), [])
  // Another take under way has begun after it was heard of.
  await holds.taking(async (ids) => {
    assert.deepEqual(ids, [])
    holds.reconcile(['1', '2'])
  })
  assert.deepEqual(await spent(), ['2'])
  holds.reconcile(['3'])
  holds.reconcile([])
  holds.reconcile(['3'])
  assert.deepEqual(await spent(), [], 'what is seen again is seen for the first time')
  holds.settle('a')
  await holds.drop()
})
