import assert from 'node:assert/strict'
import { test } from 'node:test'
import { watchWebhooks } from '../../workers/webhooks.ts'
import { createTestDatabase } from '../database.ts'
import { createJobSettings } from '../job-settings.ts'
import { until } from '../until.ts'
import { log } from './parts.ts'

const { db, query } = await createTestDatabase()

test('enqueues a job for each due endpoint, at most 1000 in one transaction', async () => {
  await query(
    `insert into account (email, password_hash) select n || '@example.com', 'x' from generate_series(1, 2500) n`,
  )
  await query(
    `insert into webhook_endpoint (secret, account_id, url, host, events) select 'aaaaaaaa.AAAA', id, 'https://example.com/', 'example.com', '{job.done}' from account`,
  )
  await query(
    `insert into webhook_delivery (endpoint_id, type, body) select id, 't', '{}' from webhook_endpoint`,
  )
  const watch = watchWebhooks(db, log, createJobSettings())
  const counts = await until('each endpoint has its job', async () => {
    const rows = await query('select count(*)::int as count from job group by created_at order by 1')
    return rows.reduce((sum, { count }) => sum + Number(count), 0) === 2500 && rows
  })
  await watch.stop()
  assert.deepEqual(
    counts.map(({ count }) => count),
    [500, 1000, 1000],
  )
})
