import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { after, test } from 'node:test'
import { readUsage } from '../../tasks/platform/process-usage.ts'
import { createSchemaChecker } from '../../tasks/worker-queues/schema-checker.ts'
import { listChildPids } from '../child-pids.ts'
import { until } from '../until.ts'

const checker = createSchemaChecker()
const impatient = createSchemaChecker(200)
after(() => {
  checker.close()
  impatient.close()
})

const SLOW_VALUE = JSON.stringify(`${'a'.repeat(50)}!`)
const EVIL_PATTERN = { type: 'string', pattern: '^(a+)+$' }

/** A schema with 2^30 paths through its alternatives. */
function createEvilNesting(): object {
  const $defs: Record<string, object> = { a30: { type: 'string' } }
  for (let n = 0; n < 30; n++) {
    const next = { $ref: `#/$defs/a${n + 1}` }
    $defs[`a${n}`] = { anyOf: [next, next] }
  }
  return { $defs, $ref: '#/$defs/a0' }
}

test('values are checked in their order, with the first problem of each', async () => {
  const schema = { type: 'object', required: ['a'], properties: { 'x/y~z': { items: { type: 'integer' } } } }
  const values = ['{"a": 1}', '{}', '{"a": 1, "x/y~z": [1, "2"]}', '[]']
  assert.deepEqual(await checker.check(1, schema, values), [
    null,
    { path: ['a'], message: "must have required property 'a'" },
    { path: ['x/y~z', 1], message: 'must be integer' },
    { path: [], message: 'must be object' },
  ])
  assert.deepEqual(await checker.check(1, false, ['1']), [{ path: [], message: 'boolean schema is false' }])
  assert.deepEqual(await checker.check(1, {}, []), [])
})

test('schemas do not see each other, even with the same $id', async () => {
  const one = { $id: 'https://example.com/a', type: 'integer' }
  assert.deepEqual(await checker.check(1, one, ['1']), [null])
  assert.deepEqual(await checker.check(2, { ...one, type: 'string' }, ['"1"']), [null])
  assert.match((await checker.compile(2, { $ref: 'https://example.com/a' })) ?? '', /can't resolve reference/)
})

test('a schema that takes too long is stopped, and others go on meanwhile', async () => {
  const slow = impatient.check(1, EVIL_PATTERN, [SLOW_VALUE, '"aaa"'])
  assert.deepEqual(await impatient.check(2, { type: 'integer' }, ['1']), [null])
  const problem = { path: [], message: 'takes too long or too much memory to check' }
  assert.deepEqual(await slow, [problem, problem])
  assert.deepEqual(await impatient.check(1, createEvilNesting(), ['1']), [problem])
  assert.deepEqual(await impatient.check(1, EVIL_PATTERN, ['"aaa"']), [null])
})

const BUSY = { code: 'database.busy' }
const listCheckers = (parent = process.pid): number[] => listChildPids(parent, 'schema-process')
const readCpuMs = (pid: number): number => readUsage(pid)?.cpuMs ?? 0
const computes = (pid: number, since: number) =>
  until('the process computes', () => readCpuMs(pid) > since + 50)

/** Returns a checker and its process, which has answered. */
async function startChecker() {
  const others = new Set(listCheckers())
  const own = createSchemaChecker(60_000, 3_000)
  after(() => own.close())
  await until('a process has started', () => own.check(1, {}, ['1']).catch(() => null))
  const [pid] = listCheckers().filter((one) => !others.has(one))
  return { own, pid: pid! }
}

for (const signal of ['SIGSTOP', 'SIGKILL'] as const)
  test(`a process that gets ${signal} during a check does not blame the schema`, async () => {
    const { own, pid } = await startChecker()
    const before = readCpuMs(pid)
    const checked = assert.rejects(own.check(1, EVIL_PATTERN, [SLOW_VALUE]), BUSY)
    await computes(pid, before)
    process.kill(pid, signal)
    await checked
  })

test('signals for all processes of a terminal do not end a check', async () => {
  const { own, pid } = await startChecker()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(pid, signal)
  assert.deepEqual(await own.check(1, {}, ['1']), [null])
  assert.ok(listCheckers().includes(pid))
})

test('a busy process exits soon after its parent was killed', async () => {
  const parent = fork(new URL('fixtures/schema-parent.ts', import.meta.url), [
    JSON.stringify([EVIL_PATTERN, SLOW_VALUE]),
  ])
  const pid = await until('the process has started', () => listCheckers(parent.pid)[0])
  await computes(pid, 1_000)
  parent.kill('SIGKILL')
  await until('the process has exited', () => readUsage(pid) === null)
})
