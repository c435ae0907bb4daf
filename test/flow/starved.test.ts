import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { documentBombs } from '../document-bombs.ts'
import { startProcess } from '../service.ts'
import { until } from '../until.ts'
import * as crash from './crash.ts'
import { createClient, startReader } from './reader.ts'

/** One account's heavy documents compete with a small document of another account. */

// More than the worker's threads, children and slots.
const FLOOD_SIZE = 6
const SLOTS = 4
const HEAVY = ['10,000 pages of one strip', 'a page of 200 MB of text', '20,000 frames']

test("one account's flood of heavy documents does not block another's small document", async (t) => {
  const { url, query } = await createTestDatabase()
  const reader = await startReader(url)
  const worker = await startProcess('worker', url, { WORKER_QUEUES: 'documents', WORKER_THREADS: `${SLOTS}` })
  const flooder = await createClient(url)
  await flooder.register('flooder@example.com')
  // Reads one document first, so that threads and children are running.
  const first = await crash.uploadText(reader, 1, 'first')
  await crash.waitForJob(query, await crash.extract(reader, first))

  const heavy = documentBombs.filter(({ name }) => HEAVY.includes(name))
  assert.equal(heavy.length, HEAVY.length)
  for (const { fileName, make } of heavy) {
    const bytes = await make()
    for (let copy = 0; copy < FLOOD_SIZE; copy++) {
      // The bytes must differ, because equal files are one document.
      const own = Buffer.concat([bytes, Buffer.from(`\n% ${copy}`)])
      const { id } = (await (await flooder.upload(own, fileName)).json()) as { id: number }
      await crash.extract(flooder, id)
    }
  }
  const countRunning = async (): Promise<number> =>
    (await query(`select count(*)::int as n from job where status = 'running'`))[0]!.n as number
  await until('the flood has all slots', async () => (await countRunning()) >= SLOTS)

  const small = await crash.uploadText(reader, 1, 'small')
  const job = await crash.extract(reader, small)
  const ended = await crash.waitForJob(query, job)
  assert.deepEqual([ended.status, ended.result], ['done', { read: 1, unread: 0, skipped: 0 }])
  const [seen] = await query(
    `select extract(epoch from small.finished_at - small.created_at)::float8 as seconds,
       (count(*) filter (where flood.finished_at between small.created_at and small.started_at))::int as passed,
       (count(*) filter (where flood.finished_at > small.finished_at or flood.finished_at is null))::int as left
     from job small join job flood on flood.id <> small.id where small.id = $1 group by small.id`,
    [job],
  )
  const { seconds, passed, left } = seen as { seconds: number; passed: number; left: number }
  t.diagnostic(`read after ${seconds.toFixed(1)} s, before which ${passed} of the flood ended`)
  // The small document must get one of the next free slots.
  assert.ok(passed <= SLOTS, `${passed} of the flood came first`)
  assert.ok(left >= SLOTS, 'the flood is not over')
  await worker.kill()
})
