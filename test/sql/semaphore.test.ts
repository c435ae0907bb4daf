import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createSemaphore } from '../../sql/semaphore.ts'
import { countKept, TIMES } from './kept-objects.ts'

/** Creates a semaphore, and functions that begin and end work with one of its permits. */

function createWorkers(places: number) {
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

test('as many work as there are places, the others in their order', async () => {
  const { semaphore, begun, begin, end } = createWorkers(2)
  const all = ['a', 'b', 'c', 'd'].map(begin)
  await turn()
  assert.deepEqual([begun, semaphore.active, semaphore.waiting], [['a', 'b'], 2, 2])
  await end('b')
  assert.deepEqual([begun, semaphore.active, semaphore.waiting], [['a', 'b', 'c'], 2, 1])
  for (const name of ['a', 'c', 'd']) await end(name)
  await Promise.all(all)
  assert.deepEqual([begun, semaphore.active, semaphore.waiting], [['a', 'b', 'c', 'd'], 0, 0])
})

test('work that fails gives its place back, too', async () => {
  const { semaphore } = createWorkers(1)
  await assert.rejects(
    semaphore.run(() => Promise.reject(new Error('no'))),
    /no/,
  )
  assert.equal(semaphore.active, 0)
})

test('who waits longer than it may gives up, in whatever order, and takes no place', async () => {
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

test('nothing stays of those who were served, even where somebody always waits', async () => {
  const kept = await countKept('served')
  assert.ok(kept < TIMES / 5, `${kept} promises of ${TIMES}`)
})

test('nothing stays of those who gave up, even where no place becomes free', async () => {
  const kept = await countKept('givenUp')
  assert.ok(kept < TIMES / 5, `${kept} promises of ${TIMES}`)
})
