import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadTasks, queuesOf } from '../../tasks/index.ts'
import { WORKER_MALLOC_VARIABLES } from '../../tasks/platform/process.ts'

const readFileAt = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

// Node with the flags of `npm start`. The lines begin with `exec`, because otherwise a shell would receive the signals.
const { start, migrate } = JSON.parse(readFileAt('package.json')).scripts as Record<string, string>
const toNodePath = (script: string): string => script.replace(/^(exec )?node /, 'node_modules/.bin/node ')
const toStartCommand = (file: string): string => toNodePath(start!.replace(/\S+$/, file))
const mallocVariables = Object.entries(WORKER_MALLOC_VARIABLES)
  .map(([name, value]) => `${name}=${value}`)
  .join(' ')

test('the Procfile starts the same as `npm start`, and has a line for every queue', async () => {
  const worker = `${mallocVariables} ${toStartCommand('workers/main.ts')}`
  const lines = [
    `web: exec env HOST=0.0.0.0 UWS_HTTP_MAX_HEADERS_SIZE=65536 UV_THREADPOOL_SIZE=8 ${toStartCommand('edge/main.ts')}`,
    `worker: exec env ${worker}`,
    `release: exec ${toNodePath(migrate!)}`,
    '# Workers for a single queue; uncomment a line to scale its queue separately.',
    ...queuesOf(await loadTasks()).map(
      (queue) => `# worker_${queue.replaceAll('-', '_')}: exec env WORKER_QUEUES=${queue} ${worker}`,
    ),
  ]
  assert.equal(readFileAt('Procfile'), `${lines.join('\n')}\n`)
})

test('runners start all Procfile lines but the release, whose end would stop the others', () => {
  assert.match(readFileAt('.foreman'), /^formation: all=1,release=0$/m)
  assert.match(readFileAt('.overmind.env'), /^OVERMIND_IGNORED_PROCESSES=release$/m)
})

test('runners wait longer than a process needs to stop', () => {
  for (const [file, name] of [
    ['.foreman', 'timeout: '],
    ['.overmind.env', 'OVERMIND_TIMEOUT='],
  ] as const)
    assert.ok(Number(readFileAt(file).split(name)[1]!.split('\n')[0]) > 9, file)
})
