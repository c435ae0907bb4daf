import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shutDown } from '../../tasks/platform/shutdown.ts'

const LONG_TIMEOUT_MS = 60_000

test('steps run in order, one after the other', async () => {
  const done: string[] = []
  const step = (name: string) => ({
    name,
    timeoutMs: LONG_TIMEOUT_MS,
    run: async () => {
      await new Promise((resolve) => setImmediate(resolve))
      done.push(name)
    },
  })
  await shutDown([
    step('one'),
    { name: 'two', timeoutMs: LONG_TIMEOUT_MS, run: () => done.push('two') },
    step('three'),
  ])
  assert.deepEqual(done, ['one', 'two', 'three'])
})

test('a step that throws, rejects or hangs is reported, and the others still run', async () => {
  const done: string[] = []
  const fail = () => {
    throw new Error('at once')
  }
  const steps = [
    { name: 'throw', timeoutMs: LONG_TIMEOUT_MS, run: fail },
    { name: 'reject', timeoutMs: LONG_TIMEOUT_MS, run: () => Promise.reject(new Error('later')) },
    { name: 'hang', timeoutMs: 5, run: () => new Promise(() => {}) },
    { name: 'end', timeoutMs: LONG_TIMEOUT_MS, run: () => done.push('end') },
  ]
  await assert.rejects(shutDown(steps), (error) => {
    assert.ok(error instanceof AggregateError)
    const messages = error.errors.map((one: Error) => [one.message, (one.cause as Error).message])
    assert.deepEqual(messages, [
      ['Failed to throw', 'at once'],
      ['Failed to reject', 'later'],
      ['Failed to hang', 'Timed out after 5 ms'],
    ])
    return true
  })
  assert.deepEqual(done, ['end'])
})
