import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testDatabase } from '../database.ts'
import { documentBombs } from '../document-bombs.ts'
import { startProcess } from '../service.ts'
import { until } from '../until.ts'
import * as crash from './crash.ts'
import { clientOf, startReader } from './reader.ts'

/** The heaviest documents of one account, and a small one of another. */

// More than the worker has threads, children or slots for.
const COPIES = 6
const SLOTS = 4
const HEAVY = ['10,000 pages of one strip', 'a page of 200 MB of text', '20,000 frames']

test('a flood of the heaviest documents of one account does not keep the small one of another waiting', async (t) => {
  const { url, query } = await testDatabase()
  const reader = await startReader(url)
  const worker = await startProcess('worker', url, { WORKER_QUEUES: 'documents', WORKER_THREADS: `${SLOTS}` })
  const flooder = await clientOf(url)
  await flooder.register('flooder@example.com')
  // The worker has read a document, so that its threads and children are there.
  const first = await crash.uploadText(reader, 1, 'first')
  await crash.jobEnded(query, await crash.extract(reader, first))

  const heavy = documentBombs.filter(({ name }) => HEAVY.includes(name))
  assert.equal(heavy.length, HEAVY.length)
  for (const { fileName, make } of heavy) {
    const bytes = await make()
    for (let copy = 0; copy < COPIES; copy++) {
      // Other bytes are another document.
      const own = Buffer.concat([bytes, Buffer.from(`\n% ${copy}`)])
      const { id } = (await (await flooder.upload(own, fileName)).json()) as { id: number }
      await crash.extract(flooder, id)
    }
  }
  const running = async (): Promise<number> =>
    (await query(`select count(*)::int as n from job where status = 'running'`))[0]!.n as number
  const over = async (): Promise<number> =>
    (await query(`select count(*)::int as n from job where finished_at is not null`))[0]!.n as number
  await until('the flood has all slots', async () => (await running()) >= SLOTS)

  const small = await crash.uploadText(reader, 1, 'small')
  const before = await over()
  const since = performance.now()
  const job = await crash.extract(reader, small)
  const ended = await crash.jobEnded(query, job)
  const [seconds, passed] = [(performance.now() - since) / 1000, (await over()) - before - 1]
  t.diagnostic(`read after ${seconds.toFixed(1)} s, in which ${passed} of the flood ended`)
  assert.deepEqual([ended.status, ended.result], ['done', { read: 1, unread: 0, skipped: 0 }])
  // It has the next slot that is free: a few that had one may end while it is read.
  assert.ok(passed <= SLOTS, `${passed} of the flood came first`)
  assert.ok((await running()) >= SLOTS, 'the flood is not over')
  await worker.kill()
})
