import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { assertChallenge } from './accounts-help.ts'
import { BLOG_PATH, createCaller, importFile } from './blog-help.ts'
import { createEmail, getSharedEdge, startEdge } from './harness.ts'
import { assertRefused, createPeopleMaker, createSlug, type Person, signInAs } from './orgs-help.ts'

/** Tests writing, editorial reads, export and import at each level of authentication. */

const { api: rbac, url, query, admin } = await getSharedEdge()
const basicEdge = await startEdge(url, { env: { AUTH_LEVEL: 'basic' } })
const noAuthEdge = await startEdge(url, { env: { AUTH_LEVEL: 'none' } })
const createPeople = createPeopleMaker(rbac, query)
const [user] = (await createPeople(1)) as [Person]
const [moderator] = (await createPeople(1, 'moderator')) as [Person]

interface Attempt {
  readonly method: string
  readonly path: string
  readonly json?: () => object
  readonly status: number
}

/** All editorial routes, with paths of existing rows. */
const protectedRoutes: readonly Attempt[] = [
  { method: 'GET', path: '/admin/posts', status: 200 },
  { method: 'GET', path: '/export', status: 200 },
  { method: 'GET', path: '/export?format=json', status: 200 },
  { method: 'POST', path: '/posts', json: () => ({ title: createSlug() }), status: 201 },
  { method: 'PUT', path: '/posts/POST', json: () => ({ excerpt: 'e' }), status: 200 },
  { method: 'POST', path: '/posts/POST/publish', status: 200 },
  { method: 'POST', path: '/posts/POST/archive', status: 200 },
  { method: 'DELETE', path: '/posts/POST', status: 204 },
  { method: 'POST', path: '/tags', json: () => ({ name: createSlug() }), status: 201 },
  { method: 'PUT', path: '/tags/TAG', json: () => ({ name: createSlug() }), status: 200 },
  { method: 'DELETE', path: '/tags/TAG', status: 204 },
]

async function sendAttempt(api: typeof rbac, who: { token: string } | null, { method, path, json }: Attempt) {
  const [row] = await query(
    `with p as (insert into blog_post (title, slug) values ('t', $1) returning id),
      t as (insert into blog_tag (name, slug) values ($1, $1) returning id)
     select p.id as post, t.id as tag from p, t`,
    [createSlug('row')],
  )
  const at = path.replace('POST', String(row!.post)).replace('TAG', String(row!.tag))
  return createCaller(api)(who, method, at, json === undefined ? {} : { json: json() })
}

const assertRefusedWithCode = (answer: Awaited<ReturnType<typeof sendAttempt>>, status: number): void => {
  assertRefused(answer, status, status === 401 ? undefined : 'This requires the role moderator or admin')
  if (status === 401) assertChallenge(answer)
}

for (const [name, api, allowed, forbidden] of [
  ['rbac', rbac, [moderator, admin], [user]],
  ['basic', basicEdge, [user, moderator, admin], []],
  ['none', noAuthEdge, [null, user], []],
] as const) {
  describe(name, () => {
    for (const one of protectedRoutes) {
      test(`${one.method} ${one.path}`, async () => {
        for (const who of allowed) assert.equal((await sendAttempt(api, who, one)).status, one.status)
        for (const who of forbidden) assertRefusedWithCode(await sendAttempt(api, who, one), 403)
        if (name === 'none') return
        assertRefusedWithCode(await sendAttempt(api, null, one), 401)
        assertRefusedWithCode(await sendAttempt(api, { token: 'nonsense' }, one), 401)
      })
    }

    test('the import', async () => {
      const send = (who: { token: string } | null) =>
        importFile(api, who, 'p.md', `---\ntitle: ${createSlug()}\n---\n`, { query: '?background=true' })
      for (const who of allowed) assert.equal((await send(who)).status, 202)
      const before = await query('select count(*) from blog_upload')
      for (const who of forbidden) assertRefusedWithCode(await send(who), 403)
      if (name !== 'none') assertRefusedWithCode(await send(null), 401)
      assert.deepEqual(await query('select count(*) from blog_upload'), before)
    })

    test('everyone can read published posts', async () => {
      const slug = createSlug('public')
      await query(
        `insert into blog_post (title, slug, status, published_at) values ('t', $1, 'published', now())`,
        [slug],
      )
      for (const who of [null, user, { token: 'nonsense' }]) {
        const call = createCaller(api)
        for (const path of ['/posts', `/posts/${slug}`, '/tags'])
          assert.equal((await call(who, 'GET', path)).status, 200)
      }
    })
  })
}

test('an account loses access immediately when it is deactivated or demoted', async (t) => {
  // Stop the clock, so that no cached account expires.
  const now = performance.now()
  t.mock.method(performance, 'now', () => now)
  for (const [api, change, status] of [
    [rbac, `update account set role = 'user' where id = $1`, 403],
    [basicEdge, `update account set is_active = false where id = $1`, 401],
  ] as const) {
    const [row] = await query(
      `insert into account (email, password_hash, role) values ($1, 'x', 'moderator') returning id, email`,
      [createEmail('out')],
    )
    const who = await signInAs(api, row!.id as number, row!.email as string, 'moderator')
    assert.equal((await createCaller(api)(who, 'GET', '/admin/posts')).status, 200)
    await query(change, [who.id])
    await query(`select pg_notify('account_changed', $1)`, [String(who.id)])
    const answer = await until('the account has lost access', async () => {
      const one = await createCaller(api)(who, 'GET', '/admin/posts')
      return one.status !== 200 && one
    })
    assertRefusedWithCode(answer, status)
  }
})

test('without authentication posts have no author', async () => {
  const { json } = await createCaller(noAuthEdge)(null, 'POST', '/posts', { json: { title: createSlug() } })
  assert.deepEqual([json.author_id, json.author_name], [null, null])
})

test('the reference lists the refusals', async () => {
  const responsesOf = async (api: typeof rbac, path: string, method: string) =>
    (await api.get('/openapi.json')).json.paths[`${BLOG_PATH}${path}`][method].responses
  const statuses = async (api: typeof rbac, path: string, method: string) =>
    Object.keys(await responsesOf(api, path, method))
  // A role is required only at levels with roles, but the scope of an API key is required at all levels.
  for (const [api, isRole] of [
    [rbac, true],
    [basicEdge, false],
  ] as const)
    assert.equal(/role/.test((await responsesOf(api, '/admin/posts', 'get'))['403'].description), isRole)
  assert.ok((await statuses(basicEdge, '/admin/posts', 'get')).includes('401'))
  assert.ok(!(await statuses(rbac, '/posts', 'get')).includes('401'))
})

test("a page of another site cannot write with an editor's cookie", async () => {
  const headers = { cookie: `millrace_session=${moderator.token}`, origin: 'https://evil.example' }
  const json = { title: createSlug() }
  assertRefused(await createCaller(rbac)(null, 'POST', '/posts', { json, headers }), 403)
  const own = { cookie: headers.cookie, origin: `http://127.0.0.1:${rbac.port}` }
  assert.notEqual(
    (
      await createCaller(rbac)(null, 'POST', '/posts', {
        json,
        headers: { ...own, host: `127.0.0.1:${rbac.port}` },
      })
    ).status,
    403,
  )
})
