import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startPusher } from '../../workers/queue/pusher.ts'
import { createTestDatabase } from '../database.ts'
import { buildJobSpec, createLedgerHelp } from '../sql/ledger-help.ts'
import { log } from './parts.ts'

/** Tests the claims of jobs for endpoints. */

const database = await createTestDatabase()
const { db, query } = database
const { lease, enqueue } = createLedgerHelp(database)

test('a pusher has stopped once its running jobs have ended', async () => {
  await query(`insert into worker_queue (name, endpoint_url, endpoint_concurrency, endpoint_secret)
    values ('pushed', 'https://example.com', 1, 'aaaaaaaa.AAAA')`)
  await enqueue(buildJobSpec({ name: 'pushed/work', queue: 'pushed' }))
  const held = await lease()
  const { promise: started, resolve: start } = Promise.withResolvers<void>()
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const run = (): Promise<void> => {
    start()
    return ended
  }
  const publisher = { notify: () => {} }
  const pusher = startPusher({ db, publisher, executor: { run }, log, leaseId: () => held })
  await started
  const order: string[] = []
  const stopping = pusher.stop().then(() => order.push('stopped'))
  await query('select')
  order.push('ended')
  end()
  await stopping
  assert.deepEqual(order, ['ended', 'stopped'])
})
