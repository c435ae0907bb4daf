import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startScheduler } from '../../workers/attempts/scheduler.ts'
import { stopSharedServices } from '../services.ts'
import { until } from '../until.ts'
import { log } from './parts.ts'

/** A scheduler must look again whenever it is asked to, also if that happens while it looks. */

await stopSharedServices()

/** Starts a scheduler whose statements the test answers one by one. */
function startHeldScheduler() {
  const answers: ((row: { moved: number; next_seconds: number | null }) => void)[] = []
  const one = () => new Promise((resolve) => answers.push(resolve as never))
  const scheduler = startScheduler({ one } as never, log)
  return { scheduler, answers }
}

test('looks again if it was woken while it looked, and goes on', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const { scheduler, answers } = startHeldScheduler()
  scheduler.wakeIn(5)
  t.mock.timers.tick(5)
  assert.equal(answers.length, 1)
  answers[0]!({ moved: 0, next_seconds: null })
  await until('it looks again', () => answers.length === 2)
  answers[1]!({ moved: 0, next_seconds: 0.5 })
  await new Promise((resolve) => setImmediate(resolve))
  t.mock.timers.tick(500)
  assert.equal(answers.length, 3)
  answers[2]!({ moved: 0, next_seconds: null })
  await scheduler.stop()
})

test('looks again immediately after a full batch, and at least once a second', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const { scheduler, answers } = startHeldScheduler()
  answers[0]!({ moved: 1000, next_seconds: 0 })
  await until('it looks again', () => answers.length === 2)
  answers[1]!({ moved: 1, next_seconds: null })
  await new Promise((resolve) => setImmediate(resolve))
  t.mock.timers.tick(1000)
  assert.equal(answers.length, 3)
  answers[2]!({ moved: 0, next_seconds: null })
  await scheduler.stop()
})
