import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSlots } from '../../sql/connections/slots.ts'

const LONG_WAIT_MS = 60_000

/** Creates slots and records which owner gets which slot, in order. */
function createRecordedSlots(count: number) {
  const slots = createSlots(count)
  const given: [owner: number, n: number][] = []
  const ask = (owner: number, max: number, waitMs = LONG_WAIT_MS) =>
    slots.reserve(owner, max, waitMs).then((n) => void given.push([owner, n]))
  return { slots, given, ask }
}
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('gives a lone owner all slots, and no more', async () => {
  const { slots, given, ask } = createRecordedSlots(4)
  await ask(1, 3)
  await ask(1, 3)
  await ask(1, 3, 5)
  assert.deepEqual(given, [
    [1, 3],
    [1, 1],
    [1, 0],
  ])
  assert.equal(slots.active, 4)
})

test('leaves one slot for an owner without any', async () => {
  const { slots, given, ask } = createRecordedSlots(4)
  await ask(1, 9)
  await ask(2, 9)
  await ask(3, 9, 5)
  assert.deepEqual(given, [
    [1, 4],
    [2, 1],
    [3, 0],
  ])
  assert.equal(slots.active, 5)
})

test('gives a free slot to the owner with the fewest, or else to the longest wait', async () => {
  const { slots, given, ask } = createRecordedSlots(4)
  await ask(1, 9)
  await ask(2, 1)
  given.length = 0
  const all = [ask(1, 9), ask(2, 1), ask(3, 1), ask(4, 1)]
  for (let i = 0; i < 4; i++) {
    slots.release(1, 1)
    await nextTurn()
  }
  assert.deepEqual(given, [
    [3, 1],
    [4, 1],
    [1, 1],
  ])
  slots.release(3, 1)
  await Promise.all(all)
  assert.deepEqual(given.at(-1), [2, 1])
})

test('shares slots that become free together among waiting owners', async () => {
  const { slots, given, ask } = createRecordedSlots(8)
  await ask(1, 8)
  given.length = 0
  const all = [ask(1, 8), ask(1, 8)]
  slots.release(1, 8)
  await Promise.all(all)
  assert.deepEqual(given, [
    [1, 4],
    [1, 4],
  ])
})

test('rejects waiting and new owners after close, which resolves when the last slot is free', async () => {
  const { slots, given, ask } = createRecordedSlots(1)
  await ask(1, 1)
  const waiting = ask(1, 1)
  let closed = 0
  const closing = [slots.close(), slots.close()].map((one) => one.then(() => closed++))
  await waiting
  await ask(2, 1)
  assert.deepEqual(
    [given.slice(1), closed],
    [
      [
        [1, 0],
        [2, 0],
      ],
      0,
    ],
  )
  slots.release(1, 1)
  await Promise.all(closing)
  await slots.close()
})

test('a caller that does not wait, or gives up, gets none, and the next one is served', async () => {
  const { slots, given, ask } = createRecordedSlots(1)
  await ask(1, 1)
  assert.equal(await slots.reserve(1, 1, 0), 0)
  const abort = new AbortController()
  const impatient = slots.reserve(1, 1, Number.POSITIVE_INFINITY, { signal: abort.signal })
  const patient = ask(1, 1, Number.POSITIVE_INFINITY)
  assert.equal(slots.waiting, 2)
  abort.abort()
  assert.equal(await impatient, 0)
  assert.equal(await slots.reserve(1, 1, Number.POSITIVE_INFINITY, { signal: abort.signal }), 0)
  assert.equal(slots.waiting, 1)
  slots.release(1, 1)
  await patient
  assert.deepEqual(given, [
    [1, 1],
    [1, 1],
  ])
})

test('adds none to those in use while it must not grow, but always gives the first', async () => {
  let canGrow = false
  const slots = createSlots(4, () => canGrow)
  assert.equal(await slots.reserve(1, 1, 0), 1)
  assert.equal(await slots.reserve(2, 1, 0), 0)
  const waiting = slots.reserve(2, 1, LONG_WAIT_MS)
  const other = slots.reserve(3, 1, LONG_WAIT_MS)
  slots.release(1, 1)
  assert.deepEqual([await waiting, slots.active], [1, 1])
  canGrow = true
  slots.release(2, 1)
  assert.equal(await other, 1)
})

test('a higher priority comes first, and a lower one after 19 others', async () => {
  const slots = createSlots(1)
  await slots.reserve(0, 1, 0)
  const granted: number[] = []
  const wait = (priority: -1 | 0 | 1) =>
    // The owner has a slot, so that none is reserved for it.
    slots.reserve(0, 1, 60_000, { priority }).then(() => {
      granted.push(priority)
    })
  const waiting = [1, 1, ...Array<0>(40).fill(0), -1].map((priority) => wait(priority as -1 | 0 | 1))
  for (const _ of waiting) {
    slots.release(0, 1)
    await new Promise(setImmediate)
  }
  await Promise.all(waiting)
  assert.equal(granted[0], -1)
  assert.deepEqual(
    granted.flatMap((priority, n) => (priority === 1 ? [n] : [])),
    [18, 38],
  )
})
