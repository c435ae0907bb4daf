import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createSemaphore } from '../../sql/connections/semaphore.ts'
import { countKeptObjects, REPETITIONS } from './kept-objects.ts'

/** Creates a semaphore, and functions that begin and end work with one of its permits. */

function createTestSemaphore(places: number) {
  const semaphore = createSemaphore(places)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const begin = (name: string): Promise<void> =>
    semaphore.run(
      () =>
        new Promise<void>((resolve) => {
          begun.push(name)
          ends.set(name, resolve)
        }),
    )
  const end = async (name: string): Promise<void> => {
    ends.get(name)!()
    await turn()
  }
  return { semaphore, begun, begin, end }
}

test('runs as many as there are permits, and the others in order', async () => {
  const { semaphore, begun, begin, end } = createTestSemaphore(2)
  const all = ['a', 'b', 'c', 'd'].map(begin)
  await turn()
  assert.deepEqual([begun, semaphore.active, semaphore.waiting], [['a', 'b'], 2, 2])
  await end('b')
  assert.deepEqual([begun, semaphore.active, semaphore.waiting], [['a', 'b', 'c'], 2, 1])
  for (const name of ['a', 'c', 'd']) await end(name)
  await Promise.all(all)
  assert.deepEqual([begun, semaphore.active, semaphore.waiting], [['a', 'b', 'c', 'd'], 0, 0])
})

test('releases the permit when the work fails', async () => {
  const { semaphore } = createTestSemaphore(1)
  await assert.rejects(
    semaphore.run(() => Promise.reject(new Error('no'))),
    /no/,
  )
  assert.equal(semaphore.active, 0)
})

test('gives up a caller that waits too long, in any order, without a permit', async () => {
  const late = () => new Error('late')
  const semaphore = createSemaphore(1, { waitMs: 30, createError: late })
  const gate = Promise.withResolvers<void>()
  const first = semaphore.run(() => gate.promise)
  const refused = [1, 2, 3].map(() =>
    assert.rejects(
      semaphore.run(async () => {}),
      /late/,
    ),
  )
  assert.equal(semaphore.waiting, 3)
  await Promise.all(refused)
  assert.deepEqual([semaphore.active, semaphore.waiting], [1, 0])
  const patient = semaphore.run(async () => 'served')
  gate.resolve()
  await first
  assert.equal(await patient, 'served')
  assert.deepEqual([semaphore.active, semaphore.waiting], [0, 0])
})

test('keeps nothing of served callers, even if others always wait', async () => {
  const kept = await countKeptObjects('served')
  assert.ok(kept < REPETITIONS / 5, `${kept} promises of ${REPETITIONS}`)
})

test('keeps nothing of callers that gave up, even if no permit is ever free', async () => {
  const kept = await countKeptObjects('givenUp')
  assert.ok(kept < REPETITIONS / 5, `${kept} promises of ${REPETITIONS}`)
})
