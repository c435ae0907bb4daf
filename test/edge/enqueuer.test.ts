import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEnqueuer } from '../../edge/pipeline/write/enqueuer.ts'
import { type ErrorCode, fail } from '../../sql/errors.ts'
import type { JobSpec } from '../../sql/jobs/jobs.ts'

/** Enqueue requests that arrive together must share a statement. */

const createJobs = (...ids: string[]): JobSpec[] => ids.map((id) => ({ id }) as JobSpec)

/** Creates a database that records the ids of each statement and rejects statements with the id `bad`. */
function createDatabase(gate: Promise<unknown> = Promise.resolve()) {
  const statements: string[][] = []
  const any = async ({ values }: { values: readonly unknown[] }) => {
    const ids = (JSON.parse(String(values[0])) as { id: string }[]).map(({ id }) => id)
    statements.push(ids)
    await gate
    if (ids.includes('bad')) throw new Error('refused')
    return ids.map((id, n) => ({ spec_ordinal: n + 1, job_id: id, joined: false }))
  }
  return {
    statements,
    enqueuer: createEnqueuer({ db: { any } as never, waitingQuota: 0 }),
  }
}
const idsOf = (rows: readonly { job_id: string }[]) => rows.map(({ job_id }) => job_id)

test('requests in one event-loop turn share a statement, and each gets its own jobs', async () => {
  const { statements, enqueuer } = createDatabase()
  const answers = await Promise.all([
    enqueuer.add(createJobs('a')),
    enqueuer.add(createJobs('b', 'c')),
    enqueuer.add(createJobs('d')),
  ])
  assert.deepEqual(answers.map(idsOf), [['a'], ['b', 'c'], ['d']])
  assert.deepEqual(statements, [['a', 'b', 'c', 'd']])
})

test('requests that arrive during a statement share the next one', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const { statements, enqueuer } = createDatabase(promise)
  const first = enqueuer.add(createJobs('a'))
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  const others = [enqueuer.add(createJobs('b')), enqueuer.add(createJobs('c'))]
  resolve()
  await Promise.all([first, ...others])
  assert.deepEqual(statements, [['a'], ['b', 'c']])
})

test('a rejected request gets its error, and the others are added', async () => {
  const { statements, enqueuer } = createDatabase()
  const ends = await Promise.allSettled([
    enqueuer.add(createJobs('a')),
    enqueuer.add(createJobs('bad')),
    enqueuer.add(createJobs('c')),
  ])
  assert.deepEqual(
    ends.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  assert.deepEqual(statements.slice(1), [['a'], ['bad'], ['c']])
})

test('a statement has a maximum size, and a larger request gets its own statement', async () => {
  const { statements, enqueuer } = createDatabase()
  const many = createJobs(...Array.from({ length: 600 }, (_, n) => `m${n}`))
  await Promise.all([
    enqueuer.add(many),
    ...Array.from({ length: 600 }, (_, n) => enqueuer.add(createJobs(`s${n}`))),
  ])
  assert.deepEqual(
    statements.map(({ length }) => length),
    [600, 500, 100],
  )
})

for (const code of ['database.down', 'database.too_slow', 'database.busy'] satisfies ErrorCode[])
  test(`${code} rejects all waiting requests immediately without a retry`, async () => {
    const { promise, reject } = Promise.withResolvers<void>()
    const { statements, enqueuer } = createDatabase(promise)
    const together = [enqueuer.add(createJobs('a')), enqueuer.add(createJobs('b'))]
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    const behind = enqueuer.add(createJobs('c'))
    reject(fail(code))
    for (const one of [...together, behind]) await assert.rejects(one, { code })
    assert.deepEqual(statements, [['a', 'b']])
  })

test('an outage during the individual retries ends them', async () => {
  const statements: number[] = []
  const any = async ({ values }: { values: readonly unknown[] }) => {
    statements.push(JSON.parse(String(values[0])).length)
    throw statements.length === 1 ? new Error('refused') : fail('database.too_slow')
  }
  const enqueuer = createEnqueuer({ db: { any } as never, waitingQuota: 0 })
  const all = ['a', 'b', 'c'].map((id) => enqueuer.add(createJobs(id)))
  for (const one of all) await assert.rejects(one, { code: 'database.too_slow' })
  assert.deepEqual(statements, [3, 1])
})
