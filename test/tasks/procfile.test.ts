import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadTasks, queuesOf } from '../../tasks/index.ts'
import { WORKER_MALLOC } from '../../tasks/process.ts'

const lines = readFileSync(new URL('../../Procfile', import.meta.url), 'utf8')
  .trim()
  .split('\n')

test('the Procfile has a line for every queue group, and for no other', async () => {
  const workers = lines.flatMap((line) => /^worker_(\w+): WORKER_QUEUES=(\S+) /.exec(line)?.slice(1, 3) ?? [])
  const queues = queuesOf(await loadTasks())
  assert.deepEqual(
    workers,
    queues.flatMap((queue) => [queue.replaceAll('-', '_'), queue]),
  )
})

test('every process runs under the flags of the start script, but for those that it needs by itself', () => {
  const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const flags = /node (--.*) \S+$/.exec(scripts.start)![1]!
  for (const line of lines.filter((line) => !line.startsWith('release:')))
    assert.ok(line.includes(`node ${flags} `), line)
})

test('workers are started with the same settings of malloc as by the start script', () => {
  const malloc = Object.entries(WORKER_MALLOC).map(([name, value]) => `${name}=${value} `)
  for (const line of lines.filter((line) => line.startsWith('worker')))
    for (const setting of malloc) assert.ok(line.includes(setting), line)
})
