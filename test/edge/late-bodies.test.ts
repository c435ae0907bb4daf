import assert from 'node:assert/strict'
import http from 'node:http'
import { describe, mock, test } from 'node:test'
import { z } from 'zod'
import { area, route } from '../../edge/pipeline/route.ts'
import { areas } from '../../edge/routes/index.ts'
import { getSharedCast, logIn } from './accounts-help.ts'
import { createKey, deleteKey, KEYS } from './api-keys-help.ts'
import { createMultipart, startEdge } from './harness.ts'

/** Tests requests whose caller loses access while the body arrives. */

const whoArea = area('who', '/who', { auth: 'user' }, [
  route({
    method: 'post',
    path: '',
    summary: 'shows the role of the caller',
    body: z.strictObject({ name: z.string() }),
    response: z.strictObject({ role: z.string() }),
    whyRepeatable: 'it changes nothing',
    handle: ({ caller }) => ({ role: caller.role }),
  }),
  route({
    method: 'post',
    path: '/public',
    summary: 'shows the id of the caller',
    auth: 'public',
    body: z.strictObject({ name: z.string() }),
    response: z.strictObject({ id: z.int().nullable() }),
    whyRepeatable: 'it changes nothing',
    handle: ({ caller }) => ({ id: caller?.id ?? null }),
  }),
])
const { url, query, admin, newcomer } = await getSharedCast()
const api = await startEdge(url, { areas: [...areas, whoArea] })
const USERS = '/api/v1/auth/users'
const NAME_BODY = { name: 'Ann' }

const setRole = async (id: number, role: string): Promise<void> => {
  const answer = await api.call('PATCH', `${USERS}/${id}/role?role=${role}`, { token: admin.token })
  assert.equal(answer.status, 200, answer.text)
}
const deactivate = async (id: number): Promise<void> => {
  const answer = await api.call('PATCH', `${USERS}/${id}/deactivate`, { token: admin.token })
  assert.equal(answer.status, 200, answer.text)
}
const createAccountWithRole = async (role: string) => {
  const account = await newcomer()
  await setRole(account.id, role)
  return account
}

// Wait until the edge has authenticated the request, which it does when the head arrives.
const { authenticator } = api.serving.edge
const authenticateSpy = mock.method(authenticator, 'authenticate')

interface LateRequest {
  readonly method?: string
  readonly path: string
  readonly token: string
  readonly json?: unknown
  readonly form?: ReturnType<typeof createMultipart>
}

/** Sends half of a body, and the rest once the edge has the head and `meanwhile` has finished. */
async function sendLate(
  { method = 'POST', path, token, json, form }: LateRequest,
  meanwhile: () => Promise<unknown>,
): Promise<{ status: number; text: string }> {
  const body = form?.body ?? Buffer.from(JSON.stringify(json))
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': form?.type ?? 'application/json',
    'content-length': body.length,
  }
  const admitted = new Promise<void>((resolve) => {
    authenticateSpy.mock.mockImplementationOnce((request) => {
      resolve()
      return Object.getPrototypeOf(authenticator).authenticate.call(authenticator, request)
    })
  })
  const request = http.request({ host: '127.0.0.1', port: api.port, method, path, headers })
  const answered = new Promise<{ status: number; text: string }>((resolve, reject) => {
    request.on('error', reject).on('response', async (message) => {
      const chunks = await message.toArray()
      resolve({ status: message.statusCode!, text: Buffer.concat(chunks).toString() })
    })
  })
  const half = Math.floor(body.length / 2)
  request.write(body.subarray(0, half))
  await admitted
  await meanwhile()
  request.end(body.subarray(half))
  return answered
}

describe('a request with a late body', () => {
  test('has no effect if its account is deactivated meanwhile', async () => {
    const [rogue, friend] = [await createAccountWithRole('admin'), await newcomer()]
    const answer = await sendLate(
      {
        method: 'PATCH',
        path: `${USERS}/${friend.id}/role`,
        token: rogue.token,
        json: { role: 'admin' },
      },
      () => deactivate(rogue.id),
    )
    assert.equal(answer.status, 401, answer.text)
    const now = await api.get(`${USERS}/${friend.id}`, { token: admin.token })
    assert.equal(now.json.role, 'user')
  })

  test('has the rights of the role at completion', async () => {
    const [rogue, friend] = [await createAccountWithRole('admin'), await newcomer()]
    const path = `${USERS}/${friend.id}/role`
    const answer = await sendLate(
      { method: 'PATCH', path, token: rogue.token, json: { role: 'admin' } },
      () => setRole(rogue.id, 'moderator'),
    )
    assert.equal(answer.status, 403, answer.text)
    const [role] = await query('select role from account where id = $1', [friend.id])
    assert.deepEqual(role, { role: 'user' })
    const still = await sendLate({ path: '/who', token: rogue.token, json: NAME_BODY }, () =>
      setRole(rogue.id, 'user'),
    )
    assert.deepEqual([still.status, still.text], [200, '{"role":"user"}'])
  })

  test('creates no key if its session has ended', async () => {
    const account = await newcomer()
    const json = { name: 'late', scopes: ['*:write'] }
    const answer = await sendLate({ path: KEYS, token: account.token, json }, async () => {
      const token = (await logIn(api, account.email)).json.access_token
      assert.equal((await api.call('DELETE', '/api/v1/auth/sessions', { token })).status, 204)
    })
    assert.equal(answer.status, 401, answer.text)
    assert.deepEqual(await query('select id from api_key where account_id = $1', [account.id]), [])
  })

  test('is rejected if its API key is deleted meanwhile', async () => {
    const account = await newcomer()
    const { id, key } = await createKey(api, account)
    const answer = await sendLate({ path: '/who', token: key, json: NAME_BODY }, () =>
      deleteKey(api, account, id),
    )
    assert.equal(answer.status, 401, answer.text)
  })

  test('becomes anonymous for a public operation if its account is deactivated meanwhile', async () => {
    const account = await newcomer()
    const send = (meanwhile: () => Promise<unknown>) =>
      sendLate({ path: '/who/public', token: account.token, json: NAME_BODY }, meanwhile)
    assert.equal((await send(async () => {})).text, `{"id":${account.id}}`)
    const answer = await send(() => deactivate(account.id))
    assert.deepEqual([answer.status, answer.text], [200, '{"id":null}'])
  })

  test('succeeds if its account stays valid', async () => {
    const account = await newcomer()
    const answer = await sendLate({ path: '/who', token: account.token, json: NAME_BODY }, async () =>
      authenticator.forget(account.id),
    )
    assert.deepEqual([answer.status, answer.text], [200, '{"role":"user"}'])
  })
})

describe('a late file is rejected without a trace', () => {
  const stored = () =>
    query(`select 'document' as what, id::text from document union all select 'blob', id::text from blob
      union all select 'import', id::text from blog_upload
      union all select 'job', id::text from job where name = 'blog.import' order by 1, 2`)

  test('as a document', async () => {
    const account = await newcomer()
    const before = await stored()
    const form = createMultipart(`of ${account.email}`)
    const answer = await sendLate({ path: '/api/v1/documents', token: account.token, form }, () =>
      deactivate(account.id),
    )
    assert.equal(answer.status, 401, answer.text)
    assert.deepEqual(await stored(), before)
  })

  test('as an import', async () => {
    const editor = await createAccountWithRole('moderator')
    const before = await stored()
    const form = createMultipart('# A post', { name: 'a.md' })
    const path = '/api/v1/blog/import?background=true'
    const answer = await sendLate({ path, token: editor.token, form }, () => setRole(editor.id, 'user'))
    assert.equal(answer.status, 403, answer.text)
    assert.deepEqual(await stored(), before)
  })
})
