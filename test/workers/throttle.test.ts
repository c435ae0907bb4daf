import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCostThrottle } from '../../workers/attempts/throttle.ts'

/** Creates a throttle that allows 1 % of the time, with a manual clock. */
function createThrottle() {
  let now = 0
  const throttle = createCostThrottle(0.01, () => now)
  return {
    throttle,
    advanceClock: (ms: number): void => {
      now += ms
    },
  }
}

test('pauses after a run according to its share of the time', async () => {
  const { throttle, advanceClock } = createThrottle()
  assert.equal(throttle.isReady, true)
  await throttle.run(async () => advanceClock(5))
  advanceClock(494)
  assert.equal(throttle.isReady, false)
  advanceClock(1)
  assert.equal(throttle.isReady, true)
})

test('pauses for at most 10 s', async () => {
  const { throttle, advanceClock } = createThrottle()
  await throttle.run(async () => advanceClock(60_000))
  advanceClock(9_999)
  assert.equal(throttle.isReady, false)
  advanceClock(1)
  assert.equal(throttle.isReady, true)
})

test('does not pause after a failed run', async () => {
  const { throttle, advanceClock } = createThrottle()
  const failing = throttle.run(async () => {
    advanceClock(60_000)
    throw new Error('an outage')
  })
  await assert.rejects(failing)
  assert.equal(throttle.isReady, true)
})
