import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { Spill } from '../../edge/http/bodies/spill.ts'
import { createRunOptions } from '../runs.ts'

test('bytes leave in arrival order for any sequence of push and shift', async () => {
  const step = fc.oneof(fc.constant('shift' as const), fc.uint8Array({ maxLength: 50 }))
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const spill = new Spill()
      const given: number[] = []
      const got: number[] = []
      for (const next of steps) {
        if (next !== 'shift') {
          given.push(...next)
          spill.push(next)
        } else if (!spill.isEmpty) got.push(...(await spill.shift()))
      }
      while (!spill.isEmpty) got.push(...(await spill.shift()))
      spill.close()
      assert.deepEqual(got, given)
    }),
    createRunOptions(50),
  )
})

test('large content is returned in pieces', async () => {
  const spill = new Spill()
  spill.push(new Uint8Array(600 * 1024).fill(1))
  const sizes: number[] = []
  while (!spill.isEmpty) sizes.push((await spill.shift()).length / 1024)
  spill.close()
  assert.deepEqual(sizes, [256, 256, 88])
})

test('close waits for a pending read, and closing twice is harmless', async () => {
  const spill = new Spill()
  spill.push(new Uint8Array([1, 2, 3]))
  const reading = spill.shift()
  spill.close()
  spill.close()
  assert.deepEqual([...(await reading)], [1, 2, 3])
  assert.throws(() => spill.push(new Uint8Array(1)), /EBADF|bad file/)
})

test('no files remain in the temporary folder', (t) => {
  // Use a separate folder, because other tests create and delete files in the shared one.
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-spill-'))
  const before = process.env.TMPDIR
  process.env.TMPDIR = folder
  t.after(() => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
    rmdirSync(folder)
  })
  const spill = new Spill()
  spill.push(new Uint8Array(10))
  assert.deepEqual(readdirSync(folder), [])
  spill.close()
})
