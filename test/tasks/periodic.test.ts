import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runPeriodically } from '../../tasks/platform/periodic.ts'
import { until } from '../until.ts'

/** Starts work whose runs the test ends one by one. */
function startWork(everyMs = 3_600_000) {
  const ends: (() => void)[] = []
  const errors: unknown[] = []
  const work = () => new Promise<void>((resolve) => ends.push(resolve))
  const periodic = runPeriodically(everyMs, work, (error) => errors.push(error))
  return { periodic, ends, errors }
}

describe('periodic work', () => {
  test('never runs twice at the same time', async () => {
    const { periodic, ends } = startWork(1)
    await until('it runs', () => ends.length === 1)
    assert.equal(periodic.runNow(), periodic.runNow())
    assert.equal(ends.length, 1)
    ends[0]!()
    await until('it runs again', () => ends.length === 2)
    const stopped = periodic.stop()
    ends[1]!()
    await stopped
  })

  test('runs once more if it was requested during a run, however often', async () => {
    const { periodic, ends } = startWork()
    periodic.request()
    periodic.request()
    periodic.request()
    assert.equal(ends.length, 1)
    ends[0]!()
    await until('it runs once more', () => ends.length === 2)
    ends[1]!()
    await periodic.stop()
    periodic.request()
    assert.equal(ends.length, 2)
  })

  test('waits for the current run when it stops, and reports errors', async () => {
    const errors: unknown[] = []
    const failed = new Error('no database')
    const periodic = runPeriodically(
      3_600_000,
      () => Promise.reject(failed),
      (error) => errors.push(error),
    )
    periodic.request()
    await periodic.stop()
    assert.deepEqual(errors, [failed])
  })
})
