import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import {
  type ChildSpec,
  computeRestartDelay,
  createSupervisor,
  selectChildFlags,
} from '../../workers/processes/supervise.ts'
import { holdTimers } from './held-timer.ts'

const FIXTURES = path.join(import.meta.dirname, 'fixtures')

interface LogLine {
  readonly level: string
  readonly data: { readonly child?: string; readonly waitMs?: number }
  readonly message: string
}

function createTestSupervisor(t: TestContext, options: { healthyMs?: number; awaitsFixes?: boolean } = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-'))
  const journal = path.join(folder, 'journal')
  writeFileSync(journal, '')
  const log: LogLine[] = []
  const supervisor = createSupervisor({
    log: (level, data, message) => log.push({ level, data, message }),
    ...options,
  })
  t.after(async () => {
    await supervisor.stop()
    rmSync(folder, { recursive: true })
  })
  const spec = (name: string, mode = 'plain', stopTimeoutMs = 5_000): ChildSpec => ({
    name,
    script: path.join(FIXTURES, 'child.ts'),
    env: { JOURNAL: journal, NAME: name, MODE: mode },
    stopTimeoutMs,
  })
  const lines = () => readFileSync(journal, 'utf8').split('\n').slice(0, -1)
  return { supervisor, spec, log, lines, journal }
}

async function waitUntil(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 30_000
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`never came true: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

test('resolves with the message that a child sends when it is ready', async (t) => {
  const { supervisor, spec } = createTestSupervisor(t)
  supervisor.start(spec('one'))
  const message = (await supervisor.ready('one')) as { ready: boolean; pid: number }
  assert.equal(message.ready, true)
  assert.equal(process.kill(message.pid, 0), true)
  assert.throws(() => supervisor.start(spec('one')), /one already exists/)
  assert.throws(() => supervisor.ready('two'), /No child named two/)
})

test('restarts a killed child immediately', async (t) => {
  const { supervisor, spec, log } = createTestSupervisor(t)
  supervisor.start(spec('one'))
  const first = (await supervisor.ready('one')) as { pid: number }
  supervisor.kill('one')
  await waitUntil(() => log.some((line) => line.message.includes('died')))
  const second = (await supervisor.ready('one')) as { pid: number }
  assert.notEqual(second.pid, first.pid)
  assert.equal(log.find((line) => line.message.includes('died'))?.data.waitMs, 0)
})

test('backs off before restarting a child that keeps crashing', async (t) => {
  const { supervisor, spec, log, lines } = createTestSupervisor(t)
  // Holds the 1000 ms timer of the fourth restart: a fifth start would fail the checks for four starts.
  holdTimers(t, 1000)
  const began = performance.now()
  supervisor.start(spec('one', 'crash'))
  await waitUntil(() => lines().length === 4)
  assert.ok(performance.now() - began >= 750)
  await waitUntil(() => log.filter((line) => line.message.includes('died')).length === 4)
  const waits = log.flatMap((line) => line.data.waitMs ?? [])
  assert.deepEqual(waits, [0, 250, 500, 1_000])
  await supervisor.stop()
  assert.equal(lines().length, 4)
})

test('doubles the restart delay up to ten seconds', () => {
  assert.deepEqual(
    [1, 2, 3, 6, 7, 8, 2_000].map(computeRestartDelay),
    [0, 250, 500, 4_000, 8_000, 10_000, 10_000],
  )
})

test('counts a death after a healthy life as the first', async (t) => {
  const { supervisor, spec, log } = createTestSupervisor(t, { healthyMs: 0 })
  supervisor.start(spec('one', 'crash'))
  await waitUntil(() => log.filter((line) => line.message.includes('died')).length >= 3)
  await supervisor.stop()
  assert.ok(log.every((line) => (line.data.waitMs ?? 0) === 0))
})

test('stops all children together', async (t) => {
  const { supervisor, spec, lines } = createTestSupervisor(t)
  for (const name of ['one', 'two', 'three']) {
    supervisor.start(spec(name))
    await supervisor.ready(name)
  }
  assert.throws(() => supervisor.start(spec('two')), /Child two already exists/)
  await Promise.all([supervisor.stop(), supervisor.stop()])
  assert.deepEqual(lines().slice(3).sort(), ['one SIGTERM', 'three SIGTERM', 'two SIGTERM'])
  assert.throws(() => supervisor.start(spec('four')), /Can't start four: the supervisor is stopping/)
})

test('kills a child that does not stop in time, without delaying the others', async (t) => {
  const { supervisor, spec, lines, log } = createTestSupervisor(t)
  const limit = holdTimers(t, 200)
  supervisor.start(spec('one'))
  supervisor.start(spec('two', 'stubborn', 200))
  await Promise.all([supervisor.ready('one'), supervisor.ready('two')])
  const stopping = supervisor.stop()
  await waitUntil(() => lines().length === 4)
  assert.deepEqual(lines().slice(2).sort(), ['one SIGTERM', 'two SIGTERM'])
  limit.goOff()
  await stopping
  assert.deepEqual(
    log.filter((line) => line.level === 'warn').map((line) => line.data.child),
    ['two'],
  )
})

test('restarts a child on request, also one that crashes, and reports no death', async (t) => {
  const { supervisor, spec, log, lines } = createTestSupervisor(t)
  supervisor.start(spec('one'))
  const first = (await supervisor.ready('one')) as { pid: number }
  const [second, same] = (await Promise.all([supervisor.restart('one'), supervisor.restart('one')])) as {
    pid: number
  }[]
  assert.notEqual(second!.pid, first.pid)
  assert.deepEqual([second, lines()], [same, ['one start', 'one SIGTERM', 'one start']])
  assert.deepEqual(
    log.filter(({ level }) => level !== 'info'),
    [],
  )
  holdTimers(t, 500)
  supervisor.start(spec('two', 'crash'))
  await waitUntil(() => lines().filter((line) => line === 'two start').length === 3)
  await waitUntil(() => log.some(({ data }) => data.child === 'two' && data.waitMs === 500))
  const ready = assert.rejects(supervisor.restart('two'), /stopped before it was ready/)
  await waitUntil(() => lines().filter((line) => line === 'two start').length === 4)
  await supervisor.stop()
  await ready
})

test('does not repeat a failed start that awaits a fix', async (t) => {
  const { supervisor, spec, log, lines } = createTestSupervisor(t, { awaitsFixes: true })
  const env: Record<string, string> = { ...spec('one').env }
  supervisor.start({ ...spec('one'), env })
  await supervisor.ready('one')
  env.MODE = 'crash'
  const restarted = supervisor.restart('one')
  await waitUntil(() => log.some(({ message }) => message.startsWith('The start failed')))
  env.MODE = 'plain'
  await Promise.all([supervisor.restart('one'), restarted])
  assert.deepEqual(lines(), ['one start', 'one SIGTERM', 'one start', 'one start'])
})

test('rejects waiting callers if it stops before a child is ready', async (t) => {
  const { supervisor, spec } = createTestSupervisor(t)
  supervisor.start(spec('one', 'crash'))
  const ready = assert.rejects(supervisor.ready('one'), /stopped before it was ready/)
  await supervisor.stop()
  await ready
})

test('passes loader flags to children, but no debugger or test runner flags', () => {
  const own = ['--import', 'tsx', '--inspect=0', '--test', '--test-timeout=5', '--max-old-space-size=99']
  assert.deepEqual(selectChildFlags(own), [
    '--disable-warning=ExperimentalWarning',
    '--import',
    'tsx',
    '--max-old-space-size=99',
  ])
})

async function startParent(t: TestContext, journal: string) {
  const flags = selectChildFlags(process.execArgv)
  const started = spawn(process.execPath, [...flags, path.join(FIXTURES, 'parent.ts')], {
    env: { ...process.env, JOURNAL: journal },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  t.after(() => started.kill('SIGKILL'))
  await once(createInterface(started.stdout), 'line')
  return started
}

test('a child stops when its parent is killed', async (t) => {
  const { journal, lines } = createTestSupervisor(t)
  const started = await startParent(t, journal)
  started.kill('SIGKILL')
  await waitUntil(() => lines().length === 2)
  assert.deepEqual(lines(), ['child start', 'child orphan'])
})

test('Ctrl-C reaches only the parent, which then stops the child', async (t) => {
  const { journal, lines } = createTestSupervisor(t)
  const started = await startParent(t, journal)
  process.kill(-started.pid!, 'SIGINT')
  await once(started, 'exit')
  assert.deepEqual(lines(), ['child start', 'child SIGTERM'])
})
