import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, randomBytes, randomUUID, sign } from 'node:crypto'
import { test } from 'node:test'
import { EncryptJWT, type JWTPayload, SignJWT } from 'jose'
import { insertMailedToken } from '../../sql/accounts/accounts.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { digestOf, inviteTokenOf } from '../../tasks/accounts/tokens.ts'
import { mailedTokenOf, TEST_KEYS } from '../keys.ts'
import { assertChallenge, getMe, getSharedCast, logIn, refreshSession, sessionIdOf } from './accounts-help.ts'
import { type Answered, SECRET, startEdge } from './harness.ts'

/** Forged tokens, stolen tokens and tokens of another kind must all get 401 and change nothing. */

const { api, url, db, admin, user, newcomer } = await getSharedCast()
// Another deployment with the same key and database, which is an easy mistake.
const namesakeEdge = await startEdge(url, { env: { PROJECT_NAME: 'mill' } })

const encodePart = (value: object | string): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const nowSeconds = (): number => Math.floor(Date.now() / 1000)
const createClaims = (): JWTPayload => ({
  iss: 'millrace',
  aud: 'millrace',
  sub: String(admin.id),
  sid: sessionIdOf(admin.token),
  role: 'admin',
  jti: randomUUID(),
  iat: nowSeconds(),
  exp: nowSeconds() + 60,
})

/** Signs any header and claims, by default with the key of this deployment. */
function forge(claims: unknown, header: object = { alg: 'HS256' }, key = SECRET): string {
  const head = `${encodePart(header)}.${encodePart(claims as object)}`
  return `${head}.${createHmac('sha256', key).update(head).digest('base64url')}`
}

/** Asserts that a token fails both as a bearer token and as the session cookie. */
async function assertRejected(token: string, what: string): Promise<void> {
  const answers: Answered[] = [
    await getMe(api, token),
    await api.get('/api/v1/auth/me', { headers: { cookie: `millrace_session=${token}` } }),
    await api.get('/api/v1/auth/users', { token }),
  ]
  for (const answer of answers) {
    assert.equal(answer.status, 401, what)
    assert.ok(
      ['auth.token_invalid', 'auth.token_expired'].includes(answer.json.code),
      `${what}: ${answer.text}`,
    )
    assertChallenge(answer, what)
  }
}

test("the test's unmodified forged token is accepted", async () => {
  assert.equal((await getMe(api, forge(createClaims()))).json.id, admin.id)
})

test('rejects algorithm none in any spelling, with and without a signature', async () => {
  const [, , signature] = admin.token.split('.')
  for (const alg of ['none', 'None', 'NONE', 'nOnE', '', null]) {
    const head = `${encodePart({ alg })}.${encodePart(createClaims())}`
    for (const end of ['', '.', `.${signature}`]) await assertRejected(`${head}${end}`, `${alg} ${end}`)
    await assertRejected(forge(createClaims(), { alg }), `${alg}, well signed`)
  }
})

test('rejects any other algorithm, even with a valid signature', async () => {
  const key = new TextEncoder().encode(SECRET.padEnd(64, '.'))
  for (const alg of ['HS384', 'HS512'])
    await assertRejected(await new SignJWT(createClaims()).setProtectedHeader({ alg }).sign(key), alg)
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ed = generateKeyPairSync('ed25519')
  for (const [alg, pair] of [
    ['RS256', rsa],
    ['PS256', rsa],
    ['ES256', ec],
    ['EdDSA', ed],
  ] as const) {
    const jwk = pair.publicKey.export({ format: 'jwk' })
    for (const more of [{}, { jwk }, { jku: 'https://evil.example/keys' }, { kid: '../../dev/null' }]) {
      const token = await new SignJWT(createClaims())
        .setProtectedHeader({ alg, ...more })
        .sign(pair.privateKey)
      await assertRejected(token, `${alg} ${Object.keys(more)}`)
    }
  }
})

test("rejects a signature by another algorithm than the header's", async () => {
  for (const alg of ['RS256', 'ES256', 'HS384', 'HS512', 'hs256', 'HS256 ', 'A256GCM'])
    await assertRejected(forge(createClaims(), { alg }), alg)
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const head = `${encodePart({ alg: 'HS256' })}.${encodePart(createClaims())}`
  const signature = sign('sha256', Buffer.from(head), privateKey).toString('base64url')
  await assertRejected(`${head}.${signature}`, 'an RSA signature')
  const pem = publicKey.export({ format: 'pem', type: 'spki' }) as string
  await assertRejected(forge(createClaims(), { alg: 'HS256' }, pem), 'a public key as the secret')
  await assertRejected(forge(createClaims(), { alg: 'RS256' }, pem), 'and called by its own name')
})

test('rejects a key inside the token, and critical headers', async () => {
  const k = randomBytes(32)
  const jwk = { kty: 'oct', k: k.toString('base64url') }
  await assertRejected(forge(createClaims(), { alg: 'HS256', jwk }, k.toString()), 'jwk')
  await assertRejected(forge(createClaims(), { alg: 'HS256', crit: ['exp'] }), 'crit')
  await assertRejected(forge(createClaims(), { alg: 'HS256', crit: ['b64'], b64: false }), 'b64')
})

test('rejects keys of other deployments, an empty key, and near misses of our key', async () => {
  for (const key of [randomBytes(32).toString('hex'), '', ' ', `${SECRET} `, SECRET.slice(0, -1), 'secret'])
    await assertRejected(forge(createClaims(), { alg: 'HS256' }, key), key)
})

test('rejects a token encrypted with our key', async () => {
  const key = Buffer.alloc(32, SECRET)
  const token = await new EncryptJWT(createClaims())
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
    .encrypt(key)
  await assertRejected(token, 'JWE')
})

test('rejects expired and not yet valid tokens, and other issuers and audiences', async () => {
  const wrong: readonly JWTPayload[] = [
    { exp: nowSeconds() - 61 },
    { exp: nowSeconds() - 60 },
    { exp: 0 },
    { exp: -nowSeconds() },
    { nbf: nowSeconds() + 120 },
    { iss: 'mill' },
    { iss: '' },
    { iss: 'Millrace' },
    { aud: 'mill' },
    { aud: '' },
    { aud: [] },
    { aud: ['mill', 'other'] },
  ]
  for (const claims of wrong)
    await assertRejected(forge({ ...createClaims(), ...claims }), JSON.stringify(claims))
  assert.equal((await getMe(api, forge({ ...createClaims(), nbf: nowSeconds() - 1 }))).status, 200)
})

test('rejects a token of another project with the same key, and ours there', async () => {
  const answer = await logIn(namesakeEdge, user.email)
  assert.equal((await getMe(namesakeEdge, answer.json.access_token)).status, 200)
  await assertRejected(answer.json.access_token, 'theirs')
  assert.equal((await getMe(namesakeEdge, user.token)).status, 401)
})

test('rejects a missing claim', async () => {
  for (const name of ['iss', 'aud', 'sub', 'sid', 'exp']) {
    const { [name]: _, ...claims } = createClaims()
    await assertRejected(forge(claims), name)
  }
  await assertRejected(forge({}), 'all of them')
})

test('rejects claims of a wrong type and claims that are not an object', async () => {
  const sid = sessionIdOf(admin.token)
  for (const claims of [
    { sub: admin.id },
    { sub: [String(admin.id)] },
    { sub: { id: admin.id } },
    { sub: true },
    { sub: null },
    { sub: '' },
    { sub: '0' },
    { sub: '-1' },
    { sub: `${admin.id}.0` },
    { sub: ` ${admin.id}` },
    { sub: `0x${admin.id}` },
    { sub: `${admin.id} or 1=1` },
    { sub: `${2 ** 31}` },
    { sub: `${2 ** 31 - 1}` },
    { sid: 1 },
    { sid: null },
    { sid: '' },
    { sid: [sid] },
    { sid: `${sid}'` },
    { exp: String(nowSeconds() + 60) },
    { exp: null },
    { exp: [nowSeconds() + 60] },
    { nbf: 'now' },
    { iss: ['millrace'] },
  ])
    await assertRejected(forge({ ...createClaims(), ...claims }), JSON.stringify(claims))
  for (const claims of ['text', '"text"', '[]', 'null', '1', '{', '\xff\xfe'])
    await assertRejected(forge(claims), claims)
})

test('rejects a token that is truncated or changed anywhere', async () => {
  const { token } = user
  for (let length = 0; length < token.length; length += 7) {
    if (length > 0) await assertRejected(token.slice(0, length), `the first ${length}`)
    const other = token[length] === 'A' ? 'B' : 'A'
    // Skip the last character of each part, which may have unused bits.
    const changed = `${token.slice(0, length)}${other}${token.slice(length + 1)}`
    if (token[length] !== '.' && token[length + 1] !== '.' && length < token.length - 1)
      assert.equal((await getMe(api, changed)).status, 401, `another character ${length}`)
  }
  assert.equal((await getMe(api, token)).status, 200)
})

test('rejects another encoding of the same bytes', async () => {
  const token = forge(createClaims())
  const [head, claims, signature] = token.split('.') as [string, string, string]
  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = ALPHABET.indexOf(signature.at(-1)!)
  const cut = signature.slice(0, -1)
  // The last of the 43 characters has 6 bits, of which the signature uses 4.
  const spellings = [1, 2, 3].map((bits) => `${cut}${ALPHABET[last ^ bits]}`)
  spellings.push(`${signature}=`, `${signature}==`)
  const other = forge({ ...createClaims(), jti: '>>>???>>>???>>>???' })
  for (const spelling of spellings) {
    assert.deepEqual(
      Buffer.from(spelling, 'base64url').subarray(0, 32),
      Buffer.from(signature, 'base64url').subarray(0, 32),
    )
    await assertRejected(`${head}.${claims}.${spelling}`, spelling)
  }
  const plain = other.replaceAll('-', '+').replaceAll('_', '/')
  assert.notEqual(plain, other)
  await assertRejected(plain, 'the other alphabet')
  await assertRejected(`${head}=.${claims}.${signature}`, 'padding')
  assert.equal((await getMe(api, token)).status, 200)
})

test('rejects overlong tokens up to and beyond the request limit', async () => {
  for (const length of [1_000, 3_000]) await assertRejected('a'.repeat(length), `${length}`)
  await assertRejected(`${admin.token}${'A'.repeat(2_000)}`, 'ours and more')
  await assertRejected(`${admin.token}.${'A'.repeat(2_000)}`, 'a fourth part')
  await assertRejected(forge({ ...createClaims(), iss: 'x'.repeat(1_500) }), 'a long claim')
  await assertRejected('.'.repeat(2_000), 'nothing but parts')
  const flood = await getMe(api, 'a'.repeat(100_000)).then(
    ({ status }) => status,
    () => 'cut off',
  )
  assert.ok(flood === 431 || flood === 'cut off', String(flood))
  assert.equal((await getMe(api, user.token)).status, 200)
})

test('rejects other kinds of token as access tokens', async () => {
  const id = uuidv7()
  const reset = mailedTokenOf('reset', id)
  await db.one(insertMailedToken(id, admin.id, 'reset', digestOf(reset), 60))
  for (const [what, token] of Object.entries({
    reset,
    verify: mailedTokenOf('verify', id),
    invite: inviteTokenOf(TEST_KEYS, 1, admin.email),
    refresh: admin.refresh,
    digest: digestOf(admin.refresh).toString('base64url'),
    session: sessionIdOf(admin.token),
    id: String(admin.id),
    secret: SECRET.replaceAll(/[ ,]/g, '.'),
  }))
    await assertRejected(token, what)
})

test('rejects an access token, and every other kind, in place of another kind', async () => {
  const { token, refresh: cookie } = await newcomer()
  const id = uuidv7()
  const [reset, verify] = (['reset', 'verify'] as const).map((kind) => mailedTokenOf(kind, id))
  await db.one(insertMailedToken(id, user.id, 'reset', digestOf(reset!), 60))
  const invite = inviteTokenOf(TEST_KEYS, 1, user.email)
  for (const value of [token, reset!, verify!, invite])
    assert.equal((await refreshSession(api, value)).status, 401)
  const post = async (path: string, json: object) => (await api.post(`/api/v1/auth/${path}`, { json })).status
  for (const value of [cookie, verify!, invite, sessionIdOf(token), id]) {
    const json = { token: value, new_password: 'another password' }
    assert.equal(await post('password-reset/confirm', json), 400)
  }
  for (const value of [cookie, reset!, invite, id])
    assert.equal(await post('verify-email', { token: value }), 400)
  // 422 is possible, because the access token is longer than any mailed token.
  assert.ok([400, 422].includes(await post('verify-email', { token })))
  assert.equal((await refreshSession(api, cookie)).status, 200, 'and nothing was used up')
})

test('rejects the token of an ended session, even if never used before', async () => {
  const { id, token } = await newcomer()
  const path = `/api/v1/auth/sessions/${sessionIdOf(token)}`
  const fresh = await api.serving.edge.authenticator.sign({ id, role: 'user' }, sessionIdOf(token))
  assert.equal((await api.call('DELETE', path, { token })).status, 204)
  await assertRejected(token, 'the one that ended it')
  await assertRejected(fresh, 'another of the same session')
})

test('accepts a credential only in its documented places', async () => {
  const { token } = user
  const body = { access_token: token }
  for (const answer of [
    await api.get(`/api/v1/auth/me?access_token=${token}`),
    await api.post('/api/v1/auth/change-password', { json: body }),
    await api.get('/api/v1/auth/me', { headers: { 'x-access-token': token, 'proxy-authorization': token } }),
    await api.get('/api/v1/auth/me', {
      headers: { cookie: `mill_session=${token}; Millrace_session=${token}` },
    }),
  ])
    assert.equal(answer.status, 401)
})
