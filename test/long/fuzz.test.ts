import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testDatabase } from '../database.ts'
import { fuzz } from '../fuzz/run.ts'
import { startService } from '../fuzz/world.ts'
import { LONG, SEED } from '../runs.ts'
import { until } from '../until.ts'

/**
 * Random requests that fast-check generates from `/openapi.json`, against an edge and a worker. Every answer must match the
 * document, no request may hang and no process may exit. `npm run fuzz -- --requests 20000 --seed S` sends more, or repeats a run.
 */

const requests = Number(process.env.FUZZ_REQUESTS ?? (LONG ? 100_000 : 1000))
const seed = SEED
const only = process.env.FUZZ_ONLY ?? ''
const database = await testDatabase()
const service = await startService(database, Math.min(100, Math.max(15, Math.round(requests / 150))))

// Error codes of jobs that indicate a defect of the service itself.
const faults = () =>
  database.query(
    `select id, name, payload, error_code, error_detail from job
     where error_code in ('internal', 'job.lost', 'job.crashed')`,
  )
const seeded = new Set((await faults()).map(({ id }) => id))

test(`${requests} requests get answers that are declared (seed ${seed})`, async (t) => {
  const { findings, operations, withoutSuccess, statuses, repeated } = await fuzz(service, {
    ...{ requests, seed, only },
  })
  const counts = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`)
  t.diagnostic(`seed ${seed}; ${counts.join(', ')}; retried: ${repeated}`)
  t.diagnostic(
    `no success of ${withoutSuccess.length} of ${operations} operations: ${withoutSuccess.join(', ')}`,
  )
  const messages = findings.map(
    ({ signature, times, curl, answer }) => `${signature} (${times} times)\n  ${curl}\n  ${answer}`,
  )
  const again = `npm run fuzz -- --requests ${requests} --seed ${seed}`
  assert.equal(messages.length, 0, `${again}\n${messages.join('\n')}`)
})

test('the same processes still serve, and no job of theirs ended in a fault', async () => {
  const { edge, worker } = service
  for (const { process } of [edge, worker])
    assert.deepEqual([process.exitCode, process.signalCode], [null, null])
  const waiting = `select from job where status in ('queued', 'running') and run_at <= now()`
  await until('the jobs end', async () => (await database.query(waiting)).length === 0, 60_000)
  const failed = (await faults()).filter(({ id }) => !seeded.has(id))
  assert.deepEqual(failed, [], worker.log.slice(-20).join('\n'))
})
