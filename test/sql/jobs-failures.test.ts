import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { readFailures } from '../../sql/jobs/search.ts'
import { MAX_COUNTED_ROWS } from '../../sql/reads/lists.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { createTestDatabase } from '../database.ts'

/** Statistics count failures up to a maximum. */

const { query, url } = await createTestDatabase()
const reader = createReader({ url, applicationName: 'failures' })
after(() => reader.close())

const addFailures = (code: string, count: number, secondsAgo: number) =>
  query(
    `insert into job (id, name, queue, mailbox, payload, status, max_tries, finished_at, error_code, error_detail)
     select gen_random_uuid(), 'n', 'documents', 'm', '{}', 'failed', 1, now() - make_interval(secs => $3), $1, 'd'
     from generate_series(1, $2)`,
    [code, count, secondsAgo],
  )
const countFailures = async (filter: Record<string, string> = {}, seconds = 3600) => {
  const { total_is_exact, groups } = JSON.parse(
    (await reader.text(readFailures.all, [JSON.stringify(filter), seconds, [3600, 604_800]]))!,
  )
  const jobs = groups.map(({ code, jobs, history }: { code: string; jobs: number; history: number[] }) => [
    code,
    jobs,
    history.reduce((sum, n) => sum + n, 0),
  ])
  return [total_is_exact, Object.fromEntries(jobs.map(([code, ...rest]: unknown[]) => [code, rest]))]
}

test('counts the latest failures up to a maximum, and says so, also with a filter', async () => {
  await addFailures('storm', MAX_COUNTED_ROWS - 10, 10)
  await addFailures('quiet', 10, 600)
  assert.deepEqual(await countFailures(), [
    true,
    { storm: [MAX_COUNTED_ROWS - 10, MAX_COUNTED_ROWS - 10], quiet: [10, 10] },
  ])
  await addFailures('storm', 5, 5)
  assert.deepEqual(await countFailures(), [
    false,
    { storm: [MAX_COUNTED_ROWS - 5, MAX_COUNTED_ROWS - 5], quiet: [5, 5] },
  ])
  assert.deepEqual(await countFailures({}, 300), [
    true,
    { storm: [MAX_COUNTED_ROWS - 5, MAX_COUNTED_ROWS - 5] },
  ])
  await addFailures('storm', 20, 5)
  assert.deepEqual(await countFailures(), [false, { storm: [MAX_COUNTED_ROWS, MAX_COUNTED_ROWS] }])
  assert.deepEqual(await countFailures({ code: 'quiet' }), [true, { quiet: [10, 10] }])
})
