import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCostThrottle } from '../../workers/attempts/throttle.ts'

/** Creates a throttle that allows 1 % of the time, with a manual clock. */
function createThrottle() {
  let now = 0
  const throttle = createCostThrottle(0.01, () => now)
  return {
    throttle,
    pass: (ms: number): void => {
      now += ms
    },
  }
}

test('pauses after a run according to its share of the time', async () => {
  const { throttle, pass } = createThrottle()
  assert.equal(throttle.ready, true)
  await throttle.run(async () => pass(5))
  pass(494)
  assert.equal(throttle.ready, false)
  pass(1)
  assert.equal(throttle.ready, true)
})

test('pauses for at most 10 s', async () => {
  const { throttle, pass } = createThrottle()
  await throttle.run(async () => pass(60_000))
  pass(9_999)
  assert.equal(throttle.ready, false)
  pass(1)
  assert.equal(throttle.ready, true)
})

test('does not pause after a failed run', async () => {
  const { throttle, pass } = createThrottle()
  const failing = throttle.run(async () => {
    pass(60_000)
    throw new Error('an outage')
  })
  await assert.rejects(failing)
  assert.equal(throttle.ready, true)
})
