import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TakenJob } from '../../sql/staged.ts'
import { createFloors } from '../../workers/floors.ts'
import { createPace } from '../../workers/pace.ts'

/** What a worker knows of staged jobs, and how often it looks at all of them. */

const job = (owner_id: number | null, ordinal: number) => ({ owner_id, ordinal }) as TakenJob

const jobs = (owner: number | null, from: number, count: number) =>
  Array.from({ length: count }, (_, i) => job(owner, from + i))
/** Floors at a time that the test sets. */
function floorsAt() {
  const clock = { ms: 0 }
  const floors = createFloors(() => clock.ms)
  return { clock, took: floors.took, next: () => Object.fromEntries(floors.next()) }
}

test('what was taken a moment ago is looked at again, at once while it is little', () => {
  const { clock, next, took } = floorsAt()
  assert.deepEqual(next(), {})
  took([job(null, 10), job(null, 11), job(7, 12)])
  assert.deepEqual(next(), { 0: 9, 7: 11 }, 'others may have been added before and committed after')
  clock.ms += 251
  assert.deepEqual(next(), { 0: 9, 7: 11 })
  assert.deepEqual(next(), { 0: 11, 7: 12 }, 'but not for ever')
  took([job(null, 20)])
  assert.deepEqual(next(), { 0: 11, 7: 12 })
  clock.ms += 251
  assert.deepEqual(next(), { 0: 11, 7: 12 })
  assert.deepEqual(next(), { 0: 20, 7: 12 })
})

test('when much is taken it is looked at again every quarter of a second, and else gone on from', () => {
  const { clock, next, took } = floorsAt()
  took(jobs(null, 1, 500))
  assert.deepEqual(next(), { 0: 0 })
  took(jobs(null, 501, 1))
  assert.deepEqual(next(), { 0: 501 })
  took(jobs(null, 502, 400))
  assert.deepEqual(next(), { 0: 901 })
  clock.ms += 251
  assert.deepEqual(next(), { 0: 0 })
  took(jobs(null, 902, 501))
  assert.deepEqual(next(), { 0: 1402 })
  clock.ms += 251
  assert.deepEqual(next(), { 0: 901 }, 'all that was taken since it was looked back')
})

test('jobs that were late take their owner back to where they are, and no other', () => {
  const { clock, next, took } = floorsAt()
  took([...jobs(1, 1000, 600), job(2, 5000)])
  clock.ms += 251
  next()
  took(jobs(1, 10, 500))
  assert.deepEqual(next(), { 1: 9, 2: 5000 })
  took(jobs(1, 510, 5))
  assert.deepEqual(next(), { 1: 514, 2: 5000 }, 'there may be more of them')
})

test('an owner without jobs for a minute is forgotten', () => {
  const { clock, next, took } = floorsAt()
  took([job(1, 1)])
  clock.ms += 50_000
  took([job(2, 2)])
  clock.ms += 11_000
  next()
  assert.deepEqual(Object.keys(next()), ['2'])
})

test('what is dear is done for its share of the time, whatever came of it', async () => {
  let ms = 0
  const pace = createPace(0.05, () => ms)
  assert.ok(pace.due)
  await pace.spend(async () => {
    ms += 1
  })
  ms += 18
  assert.ok(!pace.due)
  ms += 1
  assert.ok(pace.due)
  await assert.rejects(
    pace.spend(async () => {
      ms += 100
      throw new Error('no')
    }),
  )
  ms += 1899
  assert.ok(!pace.due)
  ms += 1
  assert.ok(pace.due)
})
