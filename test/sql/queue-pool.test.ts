import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openQueuePool } from '../../sql/queue-pool.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'

/** Connection pool of the queue's runners, used as graphile-worker does. */

const { url, query } = await createTestDatabase()
const pool = await openQueuePool({
  url,
  directUrl: url,
  pooled: false,
  applicationName: 'queue',
  size: 1,
  onError: () => {},
})
after(() => pool.end())

/** Subscribes to new jobs as a runner does. */
function subscribeToJobs(): { received: string[]; release: () => void } {
  const received: string[] = []
  let release = (): void => {}
  pool.connect((error, client, done) => {
    assert.equal(error, undefined)
    release = done
    client!.on('notification', ({ channel, payload }) => received.push(`${channel} ${payload}`))
    void client!.query('LISTEN "jobs:insert"; LISTEN "worker:migrate";')
  })
  return { received, release: () => release() }
}

const notify = (payload: string) => query(`select pg_notify('jobs:insert', $1)`, [payload])
const findListeners = () =>
  query(
    `select pid from pg_stat_activity where datname = current_database() and application_name = 'queue-listen'`,
  )

test('all runners receive jobs over one connection outside the pool', async () => {
  const [first, second] = [subscribeToJobs(), subscribeToJobs()]
  await notify('one')
  await until('both runners are notified', () => first.received.length === 1 && second.received.length === 1)
  assert.deepEqual(first.received, ['jobs:insert one'])
  first.release()
  await notify('two')
  await until('the other runner is notified', () => second.received.length === 2)
  assert.equal(first.received.length, 1)
  assert.equal((await findListeners()).length, 1)
  // Listening does not use the pool's only connection, which is still free for clients and queries.
  const client = await pool.connect()
  assert.equal((await client.query('show synchronous_commit')).rows[0].synchronous_commit, 'off')
  client.release()
  assert.equal((await pool.query('select 1 as n')).rows[0].n, 1)
  second.release()
})

test('runners poll again after the connection was lost', async () => {
  const { received, release } = subscribeToJobs()
  const [{ pid }] = (await findListeners()) as [{ pid: number }]
  await query('select pg_terminate_backend($1)', [pid])
  await until('a new connection exists', () => received.length === 1)
  assert.deepEqual(received, ['jobs:insert {"count":1}'])
  await notify('again')
  await until('the runner is notified', () => received.length === 2)
  release()
})
