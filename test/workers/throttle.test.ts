import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCostThrottle } from '../../workers/attempts/throttle.ts'

/** A throttle that allows a hundredth of the time, and a manual clock. */
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

test('what is cheap runs often, and what is expensive as its share of the time allows', async () => {
  const { throttle, pass } = createThrottle()
  assert.equal(throttle.ready, true)
  await throttle.run(async () => pass(5))
  pass(494)
  assert.equal(throttle.ready, false)
  pass(1)
  assert.equal(throttle.ready, true)
})

test('what waited for long runs again after 10 s', async () => {
  const { throttle, pass } = createThrottle()
  await throttle.run(async () => pass(60_000))
  pass(9_999)
  assert.equal(throttle.ready, false)
  pass(1)
  assert.equal(throttle.ready, true)
})

test('what fails costs nothing', async () => {
  const { throttle, pass } = createThrottle()
  const failing = throttle.run(async () => {
    pass(60_000)
    throw new Error('an outage')
  })
  await assert.rejects(failing)
  assert.equal(throttle.ready, true)
})
