import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { connect } from '../../sql/connections/driver.ts'
import { type Listener, listen } from '../../sql/connections/notify.ts'
import { createTestDatabase } from '../database.ts'
import { startPooler } from '../standins/pooler.ts'
import { until } from '../until.ts'
import { startProxy } from './proxy.ts'

const { url, query } = await createTestDatabase()

async function openListener(
  name: string,
  options: { at?: string; heartbeatMs?: number; channels?: readonly string[] } = {},
) {
  const received: string[] = []
  const errors: unknown[] = []
  let connects = 0
  const channels = Object.fromEntries(
    (options.channels ?? ['one', 'two']).map((channel) => [
      channel,
      (payload: string) => void received.push(`${channel}:${payload}`),
    ]),
  )
  const listener: Listener = await listen({
    url: options.at ?? url,
    applicationName: name,
    channels,
    onReconnect: () => void connects++,
    onError: (error) => void errors.push(error),
    ...(options.heartbeatMs === undefined ? {} : { heartbeatMs: options.heartbeatMs }),
  })
  after(() => listener.close())
  return { listener, received, errors, connects: () => connects }
}

const notify = (channel: string, payload: string) => query('select pg_notify($1, $2)', [channel, payload])
const findBackends = async (name: string) =>
  query('select pid, query from pg_stat_activity where application_name = $1', [name])
const terminateBackends = (name: string) =>
  query('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [name])

describe('a listener', () => {
  test('receives payloads of each channel in order, and no others', async () => {
    const { listener, received, connects } = await openListener('listen-channels')
    assert.deepEqual([listener.isConnected, connects()], [true, 1])
    await notify('one', 'a')
    await notify('three', 'unheard')
    await notify('two', 'b')
    await notify('one', '')
    await notify('one', 'ä 𝄞')
    await until('all payloads have arrived', () => received.length === 4)
    assert.deepEqual(received, ['one:a', 'two:b', 'one:', 'one:ä 𝄞'])
  })

  test('receives a payload after its commit, once, and never after a rollback', async () => {
    const { received } = await openListener('listen-transaction')
    await query(`do $$ begin perform pg_notify('one', 'same'); perform pg_notify('one', 'same'); end $$`)
    await assert.rejects(
      query(`do $$ begin perform pg_notify('one', 'undone'); raise exception 'no'; end $$`),
    )
    await notify('one', 'last')
    await until('the last payload has arrived', () => received.includes('one:last'))
    assert.deepEqual(received, ['one:same', 'one:last'])
  })

  test('reconnects after its backend was terminated, reports each reconnect, and receives again', async () => {
    const { listener, received, errors, connects } = await openListener('listen-cut')
    for (let round = 2; round <= 4; round++) {
      await terminateBackends('listen-cut')
      await until('the listener has reconnected', () => connects() === round && listener.isConnected)
      await notify('two', String(round))
      await until('the payload arrives', () => received.includes(`two:${round}`))
    }
    await until(
      'the terminated backends are gone',
      async () => (await findBackends('listen-cut')).length === 1,
    )
    assert.ok(errors.every((error) => error instanceof Error))
  })

  test('reports a reconnect only once it listens, so that nothing later is missed', async () => {
    let connected = 0
    const received: string[] = []
    const listener = await listen({
      url,
      applicationName: 'listen-order',
      channels: { late: (payload) => void received.push(payload) },
      onReconnect: () => void notify('late', String(++connected)),
      onError: () => {},
    })
    after(() => listener.close())
    for (let round = 1; round <= 5; round++) {
      await until(`payload of round ${round} arrives`, () => received.includes(String(round)))
      await terminateBackends('listen-order')
    }
  })

  test('waits for a server that is down, and keeps trying', async () => {
    const proxy = await startProxy(url)
    after(() => proxy.close())
    const { listener, errors, connects } = await openListener('listen-outage', { at: proxy.url })
    await proxy.refuse()
    await until('the failure is reported', () => !listener.isConnected)
    await until('the listener retries', () => errors.length >= 2)
    await proxy.accept()
    await until('the listener has reconnected', () => listener.isConnected)
    assert.equal(connects(), 2)
  })

  test('the heartbeat detects a half-open connection', async () => {
    const proxy = await startProxy(url)
    after(() => proxy.close())
    const { listener, received, errors, connects } = await openListener('listen-deaf', {
      at: proxy.url,
      heartbeatMs: 100,
    })
    proxy.swallow()
    await until('the dead connection is detected', () => errors.length > 0)
    assert.match(String(errors[0]), /does not answer/)
    await until('the listener has reconnected', () => listener.isConnected && connects() === 2)
    await notify('one', 'again')
    await until('the payload arrives', () => received.includes('one:again'))
    await until('the dead connection is closed', () => proxy.connections === 1)
  })

  test('the heartbeat detects that a pooler discarded its session', async () => {
    const pooler = await startPooler({ url, size: 2 })
    after(() => pooler.stop())
    const other = await connect({ url: pooler.url, applicationName: 'listen-other' })
    await other.query('begin; select 1')
    const { errors } = await openListener('listen-pooled', { at: pooler.url, heartbeatMs: 20 })
    // The commit frees the server connection of `other`. The pooler then runs the listener's next statement on it.
    await other.query('commit')
    await until('the lost session is detected', () => errors.length > 0)
    assert.match(String(errors[0]), /has lost channels/)
    await other.end()
  })

  test('the heartbeat keeps a healthy connection', async () => {
    const { received, errors, connects } = await openListener('listen-healthy', { heartbeatMs: 20 })
    await delay(400)
    assert.deepEqual([errors.length, connects()], [0, 1])
    await notify('one', 'x')
    await until('the payload arrives', () => received.length === 1)
  })

  test('closing ends the connection permanently', async () => {
    const { listener, connects } = await openListener('listen-close')
    await listener.close()
    assert.equal(listener.isConnected, false)
    await until('the backend is gone', async () => (await findBackends('listen-close')).length === 0)
    await delay(400)
    assert.equal(connects(), 1)
    await listener.close()
  })

  test('closing returns immediately while the server is down', async () => {
    const proxy = await startProxy(url)
    const { listener } = await openListener('listen-close-outage', { at: proxy.url })
    await proxy.close()
    await until('the failure is reported', () => !listener.isConnected)
    const since = Date.now()
    await listener.close()
    assert.ok(Date.now() - since < 15_000)
  })
})
