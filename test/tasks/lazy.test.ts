import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLazy } from '../../tasks/platform/lazy.ts'

test('something lazy is loaded once, and again after a failure', async () => {
  let loads = 0
  const load = createLazy(async () => {
    if (++loads === 1) throw new Error('no file descriptors')
    return loads
  })
  await assert.rejects(Promise.all([load(), load()]), /no file descriptors/)
  assert.deepEqual(await Promise.all([load(), load()]), [2, 2])
  assert.equal(await load(), 2)
})
