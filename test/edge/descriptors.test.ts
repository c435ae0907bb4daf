import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DescriptorUse, watchDescriptors } from '../../edge/metrics/descriptors.ts'

test('an edge warns once before its file descriptors run out, and says when they are free', async () => {
  const lines: string[] = []
  const log = {
    warn: (data: object, line: string) => void lines.push(`warn ${JSON.stringify(data)} ${line}`),
    info: (data: object, line: string) => void lines.push(`info ${JSON.stringify(data)} ${line}`),
  }
  let open = 0
  const watch = watchDescriptors(log, async () => ({ open, max: 100 }), 3_600_000)
  for (open of [10, 89, 90, 100, 85, 95, 79, 85]) await watch.runNow()
  await watch.stop()
  assert.deepEqual(
    lines.map((line) => line.slice(0, 27)),
    ['warn {"open":90,"max":100} F', 'info {"open":79,"max":100} F'].map((line) => line.slice(0, 27)),
  )
})

test('it counts the descriptors of this process', { skip: process.platform !== 'linux' }, async () => {
  const used: DescriptorUse[] = []
  const log = { warn: (data: object) => void used.push(data as DescriptorUse), info: () => {} }
  const watch = watchDescriptors(log, undefined, 3_600_000)
  await watch.runNow()
  await watch.stop()
  assert.deepEqual(used, [])
})
