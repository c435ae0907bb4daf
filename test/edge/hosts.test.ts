import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isServedHost } from '../../tasks/platform/addresses.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { type Api, PASSWORD, startEdge, startEdgeAndDatabase } from './harness.ts'

const { api, url } = await startEdgeAndDatabase()
const PRODUCTION_ENV = { NODE_ENV: 'production', DATABASE_URL: url }
const requestStatus = async (edge: Api, host: string, path = '/api/v1/tasks') =>
  (await edge.get(path, { headers: { host } })).status

/** Returns the hosts of the list that an edge with these settings serves. */
function filterServed(env: Readonly<Record<string, string>>, ...hosts: readonly string[]): string[] {
  const { servedHosts } = parseSettings({ SECRET_KEY: 'a secret for tests, long enough to be one', ...env })
  return hosts.filter((host) => servedHosts === null || isServedHost(servedHosts, host))
}

describe('an edge on a loopback address', () => {
  test('serves localhost, IP addresses and the host of PUBLIC_BASE_URL, on any port', () => {
    const right = [
      'localhost',
      'localhost:1',
      'LOCALHOST:8000',
      'app.localhost',
      '127.0.0.1:8000',
      '[::1]:80',
      '10.1.2.3',
    ]
    const wrong = [
      'evil.example',
      'evil.example:8000',
      'localhost.evil.example',
      'notlocalhost',
      '.localhost',
      '',
      '1',
      '127.0.0.1.evil.example',
    ]
    assert.deepEqual(filterServed({}, ...right, ...wrong), right)
    const env = { PUBLIC_BASE_URL: 'https://Mill.example.com:8443' }
    assert.deepEqual(filterServed(env, 'mill.example.com', 'mill.example.com.:443', 'example.com'), [
      'mill.example.com',
      'mill.example.com.:443',
    ])
  })

  test('rejects other host names, because a rebound page could become admin', async () => {
    const rebound = { host: `evil.example:${api.port}`, origin: `http://evil.example:${api.port}` }
    const json = { email: 'evil@example.com', password: PASSWORD }
    const answer = await api.post('/api/v1/auth/register', { json, headers: rebound })
    assert.equal(answer.status, 421)
    assert.deepEqual(answer.json, {
      detail: 'This service does not serve that host; set PUBLIC_BASE_URL or ALLOWED_HOSTS',
      code: 'request.misdirected',
    })
    assert.equal((await api.register('first@example.com')).role, 'admin')
    for (const path of ['/', '/docs', '/openapi.json', '/monitor', '/api/v1/tasks', '/nothing'])
      assert.equal(await requestStatus(api, 'evil.example', path), 421, path)
  })

  test('answers probes for any host', async () => {
    for (const path of ['/health', '/ready', '/metrics'])
      assert.equal(await requestStatus(api, 'evil.example', path), 200, path)
  })
})

describe('an edge that other machines can reach', () => {
  const host = { HOST: '0.0.0.0' }
  const base = { PUBLIC_BASE_URL: 'https://mill.example.com' }

  test('serves only the host of PUBLIC_BASE_URL in production', async () => {
    const hosts = ['mill.example.com', 'localhost', '127.0.0.1', 'evil.example']
    assert.deepEqual(filterServed({ ...PRODUCTION_ENV, ...host, ...base }, ...hosts), ['mill.example.com'])
    const edge = await startEdge(url, { env: { ...PRODUCTION_ENV, ...host, ...base } })
    assert.equal(await requestStatus(edge, 'mill.example.com'), 401)
    assert.equal(await requestStatus(edge, 'localhost'), 421)
    assert.equal(await requestStatus(edge, '10.0.0.7:8000', '/ready'), 200)
  })

  test('serves any host in development', () => {
    assert.deepEqual(filterServed(host, 'box.local', 'evil.example'), ['box.local', 'evil.example'])
  })

  test('serves ALLOWED_HOSTS instead, where a star matches all subdomains', () => {
    const env = { ...PRODUCTION_ENV, ...host, ...base, ALLOWED_HOSTS: 'API.example.com, *.apps.example.com' }
    const right = ['api.example.com', 'a.apps.example.com', 'a.b.apps.example.com']
    assert.deepEqual(
      filterServed(env, ...right, 'apps.example.com', 'mill.example.com', 'xapi.example.com'),
      right,
    )
    assert.deepEqual(filterServed({ ...env, ALLOWED_HOSTS: '*' }, 'evil.example'), ['evil.example'])
  })

  test('fails to start in production without either setting', () => {
    const start = (more: object) =>
      parseSettings({
        SECRET_KEY: 'a secret for tests, long enough to be one',
        ...PRODUCTION_ENV,
        ...host,
        ...more,
      })
    assert.throws(() => start({}), /PUBLIC_BASE_URL: required in production.*or set ALLOWED_HOSTS/)
    for (const wrong of ['https://a.example', 'a.example:80', 'a b', ',', '*.*', 'a.*'])
      assert.throws(
        () => start({ ALLOWED_HOSTS: wrong }),
        /ALLOWED_HOSTS: must be a comma-separated list of host names/,
      )
    assert.ok(start({ ALLOWED_HOSTS: 'a.example,[::1]' }))
  })
})
