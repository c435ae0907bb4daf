import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openQueueConnections } from '../../sql/connections/queue-pool.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'

/** Connections of the queue's runners, used as graphile-worker does. */

const { url, query } = await createTestDatabase()
const connections = await openQueueConnections({
  url,
  directUrl: url,
  pooled: false,
  applicationName: 'queue',
  size: 1,
  onError: () => {},
})
after(() => connections.end())

/** Subscribes to deliveries of these tasks as a runner does; `received` has the number of each notification. */
function subscribe(...tasks: string[]) {
  const received: number[] = []
  let release = (): void => {}
  const pool = connections.poolFor(tasks)
  pool.connect((error, client, done) => {
    assert.equal(error, undefined)
    release = done
    client!.on('notification', ({ channel, payload }) => {
      if (channel === 'jobs:insert') received.push(JSON.parse(payload!).count)
    })
    void client!.query('LISTEN "jobs:insert"; LISTEN "worker:migrate";')
  })
  return { pool, received, release: () => release() }
}

const notify = (payload: string) => query(`select pg_notify('deliveries', $1)`, [payload])
const findListeners = () =>
  query(
    `select pid from pg_stat_activity where datname = current_database() and application_name = 'queue-listen'`,
  )

test('runners hear of the deliveries of their tasks over one connection outside the pool', async () => {
  const [first, second] = [subscribe('extract', 'noop'), subscribe('send')]
  await notify('noop:3 send:1 extract:2')
  await notify('send:9')
  await until('the second runner is notified', () => second.received.length === 2)
  assert.deepEqual([first.received, second.received], [[5], [1, 9]])
  await notify('')
  await until('both runners are notified', () => first.received.length === 2 && second.received.length === 3)
  first.release()
  await notify('noop:1 send:1')
  await until('the other runner is notified', () => second.received.length === 4)
  assert.equal(first.received.length, 2)
  assert.equal((await findListeners()).length, 1)
  // Listening does not use the pool's only connection, which is still free for clients and queries.
  const client = await second.pool.connect()
  assert.equal((await client.query('show synchronous_commit')).rows[0].synchronous_commit, 'off')
  client.release()
  assert.equal((await second.pool.query('select 1 as n')).rows[0].n, 1)
  second.release()
})

test('runners look for deliveries after the connection was lost', async () => {
  const { received, release } = subscribe('extract')
  const [{ pid }] = (await findListeners()) as [{ pid: number }]
  await query('select pg_terminate_backend($1)', [pid])
  await until('a new connection exists', () => received.length === 1)
  await notify('extract:1')
  await until('the runner is notified', () => received.length === 2)
  release()
})
