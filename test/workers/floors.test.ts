import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Taken } from '../../sql/jobs.ts'
import { createFloors } from '../../workers/floors.ts'
import { createPace } from '../../workers/pace.ts'

/** What a worker knows of staged jobs, and how often it looks at all of them. */

const job = (owner_id: number | null, ordinal: number) => ({ owner_id, ordinal }) as Taken

test('floors follow what was taken a moment later, each owner its own', () => {
  let ms = 0
  const floors = createFloors(() => ms)
  assert.deepEqual([...floors.known], [])
  floors.took([job(null, 10), job(null, 11), job(7, 12)])
  assert.deepEqual(
    [...floors.known],
    [
      [0, 9],
      [7, 11],
    ],
  )
  // Neither at once, nor after the first moment: others may have been added before and committed after.
  ms += 300
  assert.equal(floors.known.get(0), 9)
  floors.took([job(null, 20)])
  ms += 300
  assert.equal(floors.known.get(0), 11)
  assert.equal(floors.known.get(7), 12)
  ms += 300
  assert.equal(floors.known.get(0), 20)
})

test('a job that was late takes the floor back to where it is', () => {
  let ms = 0
  const floors = createFloors(() => ms)
  floors.took([job(1, 100)])
  for (let i = 0; i < 3; i++, ms += 300) assert.ok(floors.known.has(1))
  assert.equal(floors.known.get(1), 100)
  floors.took([job(1, 50), job(1, 101)])
  assert.equal(floors.known.get(1), 49)
  for (let i = 0; i < 3; i++, ms += 300) assert.ok(floors.known.has(1))
  assert.equal(floors.known.get(1), 101)
})

test('an owner without jobs for a minute is forgotten', () => {
  let ms = 0
  const floors = createFloors(() => ms)
  floors.took([job(1, 1)])
  ms += 50_000
  floors.took([job(2, 2)])
  ms += 11_000
  assert.deepEqual([...floors.known.keys()], [2])
})

test('what is dear is done for a twentieth of the time, whatever came of it', async () => {
  let ms = 0
  const pace = createPace(() => ms)
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
