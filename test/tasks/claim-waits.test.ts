import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type AttemptResult, createClaimWaits } from '../../tasks/worker-queues/claim-waits.ts'

const NOTHING: AttemptResult = { isDone: false, held: null, mustRepeat: false }
const DONE: AttemptResult = { ...NOTHING, isDone: true }
const LONG_MS = 60_000

/** Starts waiting claims of a queue, whose attempts return the results in turn, and then the last one again. */
function createClaims() {
  const waits = createClaimWaits()
  const attempts: string[] = []
  const start = (name: string, results: readonly AttemptResult[], more: object = {}) => {
    let n = 0
    return waits.run({ queue: 'q', tasks: null, waitMs: LONG_MS, ...more }, async () => {
      attempts.push(name)
      return results[Math.min(n++, results.length - 1)]!
    })
  }
  return { waits, attempts, start }
}

test('a notification wakes as many claims as there are deliveries, in their order', async () => {
  const { waits, attempts, start } = createClaims()
  const claims = ['a', 'b', 'c'].map((name) => start(name, [NOTHING, DONE]))
  await nextTurn()
  waits.handleDeliveries('other/t:5 q/t:2')
  await Promise.all(claims.slice(0, 2))
  assert.deepEqual(attempts, ['a', 'b', 'c', 'a', 'b'])
  waits.handleDeliveries('')
  await claims[2]
  assert.equal(waits.count, 0)
})

test('claims of other tasks, and those that are held, do not swallow a notification', async () => {
  const { waits, start } = createClaims()
  const others = [
    start('other task', [NOTHING], { tasks: ['x'] }),
    start('drained', [{ ...NOTHING, held: 'queue' }]),
    start('at the limit', [{ ...NOTHING, held: 'limit' }]),
  ]
  const able = start('able', [NOTHING, DONE])
  await nextTurn()
  waits.handleDeliveries('q/t:1')
  assert.equal(await able, DONE)
  waits.stop()
  await Promise.all(others)
})

test('a notification during an attempt repeats it', async () => {
  const waits = createClaimWaits()
  const held = Promise.withResolvers<void>()
  let attempts = 0
  const claim = waits.run({ queue: 'q', tasks: null, waitMs: LONG_MS }, async () => {
    if (++attempts === 1) await held.promise
    return attempts === 1 ? NOTHING : DONE
  })
  waits.handleDeliveries('q/t:1')
  held.resolve()
  assert.equal(await claim, DONE)
  assert.equal(attempts, 2)
})

test('a woken claim whose caller has left, or whose attempt fails, hands the notification on', async () => {
  const { waits, start } = createClaims()
  const leaving = new AbortController()
  const left = start('left', [NOTHING], { signal: leaving.signal })
  let attempts = 0
  const failing = waits.run({ queue: 'q', tasks: null, waitMs: LONG_MS }, async () => {
    if (++attempts > 1) throw new Error('No database')
    return NOTHING
  })
  const last = start('last', [NOTHING, DONE])
  await nextTurn()
  waits.handleDeliveries('q/t:1')
  leaving.abort()
  assert.equal(await left, NOTHING)
  await assert.rejects(failing, /No database/)
  assert.equal(await last, DONE)
})

test('of many claims at a limit only one polls, and ends wake as many as have ended', async () => {
  const { waits, attempts, start } = createClaims()
  const limited: AttemptResult = { ...NOTHING, held: 'limit' }
  const claims = ['a', 'b', 'c'].map((name) => start(name, [limited, DONE]))
  await nextTurn()
  waits.handleEnds('q', 1)
  await claims[0]
  assert.deepEqual(attempts.slice(0, 4), ['a', 'b', 'c', 'a'])
  // The first one has polled, so another one takes over.
  await Promise.all(claims)
  assert.deepEqual(attempts.slice(4).sort(), ['b', 'c'])
})

test('the end of the wait, and of all waits, return the last result', async () => {
  const { waits, start } = createClaims()
  assert.equal(await start('short', [NOTHING], { waitMs: 20 }), NOTHING)
  const claim = start('long', [NOTHING])
  await nextTurn()
  waits.stop()
  assert.equal(await claim, NOTHING)
  assert.equal(await start('later', [NOTHING]), NOTHING)
  assert.equal(waits.count, 0)
})
