import assert from 'node:assert/strict'
import { type AddressInfo, connect as connectTo, createServer } from 'node:net'
import { after, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import { parseServers, requireStandby } from '../../sql/connections/hosts.ts'
import { startProxy } from './proxy.ts'
import { sharedDatabase } from './shared-database.ts'

const { url } = await sharedDatabase()

test('accepts a connection string with several servers', () => {
  const [user, path] = ['postgresql://u:p%40ss@', '/name']
  assert.deepEqual(parseServers(`${user}a:5432,b${path}?target_session_attrs=read-write&sslmode=require`), {
    urls: [`${user}a:5432${path}?sslmode=require`, `${user}b${path}?sslmode=require`],
    requiredRole: 'primary',
  })
  assert.deepEqual(parseServers(`${user}a${path}?target_session_attrs=any`), {
    urls: [`${user}a${path}`],
    requiredRole: 'any',
  })
  assert.deepEqual(parseServers('postgres://u@%2Ftmp%2Fx:1/n').urls, ['postgres://u@%2Ftmp%2Fx:1/n'])
  assert.deepEqual(parseServers('postgres://[::1]:5432,[::2]/n?target_session_attrs=primary'), {
    urls: ['postgres://[::1]:5432/n', 'postgres://[::2]/n'],
    requiredRole: 'primary',
  })
})

test('can require a standby among the servers', () => {
  for (const more of ['', '?sslmode=require', '?target_session_attrs=any&sslmode=require']) {
    const { urls, requiredRole } = parseServers(requireStandby(`postgres://u@a,b/n${more}`))
    const rest = more === '' ? '' : '?sslmode=require'
    assert.deepEqual(
      [urls, requiredRole],
      [[`postgres://u@a/n${rest}`, `postgres://u@b/n${rest}`], 'standby'],
    )
  }
})

test('reports an invalid server without the password', () => {
  const wrong = () => parseServers('postgresql://u:secret@a/n?target_session_attrs=prefer-standby')
  assert.throws(wrong, /target_session_attrs must be any, read-write, primary, standby, not prefer-standby/)
  assert.throws(
    () => parseServers('mysql://u:secret@a/n'),
    (error: Error) => !error.message.includes('secret'),
  )
})

test('tries the next server when one rejects the connection, and remembers it', async () => {
  const proxy = await startProxy(url)
  after(() => proxy.close())
  const { port } = new URL(proxy.url)
  // Port 1, on which no server listens, comes first.
  const both = proxy.url.replace(`127.0.0.1:${port}`, `127.0.0.1:1,127.0.0.1:${port}`)
  for (let i = 0; i < 3; i++) {
    const client = await connect({ url: both, applicationName: 'hosts' })
    assert.equal((await client.query('select 1 as n')).rows[0].n, 1)
    await client.end()
  }
  await proxy.refuse()
  await assert.rejects(connect({ url: both, applicationName: 'hosts' }), /ECONNREFUSED/)
  await proxy.accept()
  await (await connect({ url: both, applicationName: 'hosts' })).end()
})

test('skips a read-only server if a writable one is required', async () => {
  const proxy = await startProxy(url)
  after(() => proxy.close())
  const at = (more: string) => `${proxy.url}?${more}`
  const readOnly = `options=${encodeURIComponent('-c default_transaction_read_only=on')}`
  await (await connect({ url: at(readOnly), applicationName: 'hosts' })).end()
  const refused = connect({
    url: at(`${readOnly}&target_session_attrs=read-write`),
    applicationName: 'hosts',
  })
  await assert.rejects(refused, (error) => (error as { code?: string }).code === '25006')
})

test('skips a primary if a standby is required', async () => {
  const refused = connect({ url: requireStandby(url), applicationName: 'hosts' })
  await assert.rejects(refused, (error) => (error as { code?: string }).code === '08004')
})

test('gives up a server that falls silent after accepting a connection', async () => {
  const proxy = await startProxy(url)
  after(() => proxy.close())
  const upstream = Number(new URL(proxy.url).port)
  const mute = createServer((near) => {
    const far = connectTo(upstream, '127.0.0.1')
    for (const socket of [near, far]) socket.on('error', () => {}).on('close', () => far.destroy())
    near.on('data', (chunk) => chunk.includes('transaction_read_only') || far.write(chunk))
    far.pipe(near)
  })
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
  after(() => mute.close())
  const { port } = mute.address() as AddressInfo
  const at = `${proxy.url.replace(String(upstream), String(port))}?target_session_attrs=read-write`
  await assert.rejects(
    connect({ url: at, applicationName: 'hosts', connectMs: 300 }),
    /Connection terminated/,
  )
})
