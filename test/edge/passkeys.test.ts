import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { userHandleOf } from '../../edge/routes/accounts/relying-party.ts'
import { Authenticator, type Deviation, encodeCbor } from '../passkeys.ts'
import { assertRefused, getMe, getSharedCast, logIn, sessionIdOf } from './accounts-help.ts'
import { type Account, type Answered, PASSWORD, startEdge } from './harness.ts'
import { enableTotp } from './totp-help.ts'

/** Tests passkey creation, sign-in and hostile input. */

const ORIGIN = 'https://mill.example.com'
const env = { PUBLIC_BASE_URL: `${ORIGIN}/` }
const { query, url, admin, newcomer } = await getSharedCast()
const [api, other] = [await startEdge(url, { env }), await startEdge(url, { env })]
const PASSKEYS = '/api/v1/auth/passkeys'
const CREATION_REFUSED = [400, 'The passkey could not be verified; start over'] as const
const SIGN_IN_REFUSED = [401, 'The passkey is unknown or could not be verified; try again'] as const
const PASSKEY_MISSING = [404, 'Passkey not found'] as const
const PROOF_REQUIRED =
  'This requires the password (and a one-time code, if enabled) or a sign-in within the last 10 minutes'

const requestCreation = async ({ token }: Account, json: object = {}) => {
  const answer = await api.post(`${PASSKEYS}/options`, { token, json })
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const storePasskey = ({ token }: Account, credential: unknown, more: object = {}, headers = {}) =>
  api.post(PASSKEYS, { token, json: { credential, ...more }, headers })
const request = async (edge = api) => (await edge.post(`${PASSKEYS}/sign-in/options`)).json
const send = (credential: unknown, edge = api) => edge.post(`${PASSKEYS}/sign-in`, { json: { credential } })
const signInWithPasskey = async (device: Authenticator, twist: Deviation = {}) =>
  send(device.get(await request(), twist))
const list = async ({ token }: Account) => (await api.get(PASSKEYS, { token })).json
const ageSession = ({ token }: Account) =>
  query(`update session set created_at = now() - interval '1 hour' where id = $1`, [sessionIdOf(token)])

/** Creates an account with a passkey. */
async function createHolder(options: { counts?: boolean } = {}) {
  const account = await newcomer()
  const device = new Authenticator(ORIGIN, options)
  const kept = await storePasskey(account, device.create(await requestCreation(account)))
  assert.equal(kept.status, 201, kept.text)
  return { account, device, passkey: kept.json }
}

describe('creating a passkey', () => {
  test('starts with browser options for this service and account', async () => {
    const account = await newcomer()
    const answer = await api.post(`${PASSKEYS}/options`, { token: account.token, json: {} })
    assert.equal(answer.headers['cache-control'], 'no-store')
    const { challenge, ...options } = answer.json
    assert.equal(Buffer.from(challenge, 'base64url').length, 32)
    assert.deepEqual(options, {
      timeout: 300_000,
      rp: { id: 'mill.example.com', name: 'millrace' },
      user: {
        id: Buffer.from(String(account.id)).toString('base64url'),
        name: account.email,
        displayName: account.email,
      },
      pubKeyCredParams: [-8, -7, -257].map((alg) => ({ type: 'public-key', alg })),
      excludeCredentials: [],
      authenticatorSelection: {
        ...{ residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
      },
      attestation: 'none',
    })
  })

  test("stores it under the device's or a given name, and only once", async () => {
    const account = await newcomer()
    const device = new Authenticator(ORIGIN)
    const agent = 'Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0'
    const kept = await storePasskey(
      account,
      device.create(await requestCreation(account)),
      {},
      { 'user-agent': agent },
    )
    assert.equal(kept.status, 201, kept.text)
    const { id, created_at, ...shown } = kept.json
    assert.deepEqual(shown, {
      ...{
        name: 'Firefox 132 on Linux',
        is_synced: true,
        transports: ['internal', 'hybrid'],
        last_used_at: null,
      },
    })
    const next = await requestCreation(account)
    assert.deepEqual(next.excludeCredentials, [
      { type: 'public-key', id: device.id.toString('base64url'), transports: ['internal', 'hybrid'] },
    ])
    assertRefused(await storePasskey(account, device.create(next)), 409, 'This passkey is already registered')
    const second = new Authenticator(ORIGIN)
    const named = await storePasskey(account, second.create(await requestCreation(account)), {
      name: ' Yubikey ',
    })
    assert.equal(named.json.name, 'Yubikey')
    assert.deepEqual(await list(account), [named.json, kept.json])
    assert.ok(id !== named.json.id && created_at <= named.json.created_at)
  })

  test('requires a recent sign-in or the password, and the code if enabled', async () => {
    const account = await newcomer()
    await ageSession(account)
    const ask = (json: object) => api.post(`${PASSKEYS}/options`, { token: account.token, json })
    assertRefused(await ask({}), 403, PROOF_REQUIRED)
    assertRefused(await ask({ password: 'wrong horse' }), 400, 'The password or the code is incorrect')
    assert.equal((await ask({ password: PASSWORD })).status, 200)
    await query(`update session set created_at = now() where id = $1`, [sessionIdOf(account.token)])
    const { recoveryCodes } = await enableTotp(api, account)
    await ageSession(account)
    assertRefused(await ask({ password: PASSWORD }), 403, PROOF_REQUIRED)
    assert.equal((await ask({ password: PASSWORD, recovery_code: recoveryCodes[0] })).status, 200)
  })

  test('accepts any attestation format without verifying it', async () => {
    for (const format of ['packed', 'tpm', 'apple', 'android-key', 'android-safetynet', 'fido-u2f', 'evil']) {
      const account = await newcomer()
      const device = new Authenticator(ORIGIN)
      const kept = await storePasskey(account, device.create(await requestCreation(account), { format }))
      assert.equal(kept.status, 201, `${format}: ${kept.text}`)
      assert.equal((await signInWithPasskey(device)).status, 200, format)
    }
  })

  test('returns the same options for the same Idempotency-Key', async () => {
    const account = await newcomer()
    const credential = new Authenticator(ORIGIN).create(await requestCreation(account))
    const headers = { 'idempotency-key': randomUUID() }
    const [first, second] = [
      await storePasskey(account, credential, {}, headers),
      await storePasskey(account, credential, {}, headers),
    ]
    assert.equal(first.status, 201)
    assert.equal(second.text, first.text)
    assert.equal((await list(account)).length, 1)
  })

  test('accepts a challenge once, in time, from its account and for its purpose', async () => {
    const [account, stranger] = [await newcomer(), await newcomer()]
    const make = (options: { challenge: string }, twist: Deviation = {}) =>
      new Authenticator(ORIGIN).create({ ...asked, ...options }, twist)
    const asked = await requestCreation(account)
    assertRefused(await storePasskey(stranger, make(asked)), ...CREATION_REFUSED)
    // Another account's rejected attempt does not use the challenge up, but the owner's first response does.
    assert.equal((await storePasskey(account, make(asked))).status, 201)
    assertRefused(await storePasskey(account, make(asked)), ...CREATION_REFUSED)
    const failed = await requestCreation(account)
    assertRefused(
      await storePasskey(account, make(failed, { origin: 'https://evil.example' })),
      ...CREATION_REFUSED,
    )
    assertRefused(await storePasskey(account, make(failed)), ...CREATION_REFUSED)
    assertRefused(await storePasskey(account, make(await request())), ...CREATION_REFUSED)
    assertRefused(
      await storePasskey(account, make({ challenge: randomBytes(32).toString('base64url') })),
      ...CREATION_REFUSED,
    )
    const old = await requestCreation(account)
    await query(`update passkey_challenge set expires_at = now()`)
    assertRefused(await storePasskey(account, make(old)), ...CREATION_REFUSED)
    assert.equal((await list(account)).length, 1)
  })

  test('stores one of two concurrent responses to a challenge', async () => {
    const account = await newcomer()
    const asked = await requestCreation(account)
    const answers = await Promise.all(
      [api, other, api].map((edge) =>
        edge.post(PASSKEYS, {
          token: account.token,
          json: { credential: new Authenticator(ORIGIN).create(asked) },
        }),
      ),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 400, 400])
  })

  for (const [what, twist] of [
    ['of another origin', { origin: 'https://evil.example' }],
    ['of a page without TLS', { origin: 'http://mill.example.com' }],
    ['of another port', { origin: `${ORIGIN}:8443` }],
    ['of a site below', { origin: 'https://a.mill.example.com' }],
    ['for another relying party', { rpId: 'evil.example' }],
    ['for the domain above', { rpId: 'example.com' }],
    ['that is an answer to a sign-in', { type: 'webauthn.get' }],
    ['without its user', { present: false }],
    ['without a PIN or a finger', { verified: false }],
    ['of an algorithm that was not asked for', { alg: -65535 }],
  ] as const satisfies readonly (readonly [string, Deviation])[])
    test(`is rejected ${what}`, async () => {
      const account = await newcomer()
      const credential = new Authenticator(ORIGIN).create(await requestCreation(account), twist)
      assertRefused(await storePasskey(account, credential), ...CREATION_REFUSED)
      assert.deepEqual(await list(account), [])
    })

  test('is rejected for invalid CBOR and CBOR that attacks parsers', async () => {
    const account = await newcomer()
    const bombs: readonly Uint8Array[] = [
      new Uint8Array(0),
      Buffer.from([0xff]),
      // CBOR arrays, maps, texts and bytes that declare a huge length, and nested arrays.
      ...[0x9b, 0xbb, 0x7b, 0x5b].map((major) => Buffer.from([major, ...Array(8).fill(0xff)])),
      ...[0x9a, 0xba, 0x7a, 0x5a].map((major) => Buffer.from([major, ...Array(4).fill(0x7f)])),
      ...[0x81, 0x9f, 0xbf, 0xd8].map((byte) => Buffer.alloc(40_000, byte)),
      encodeCbor('text'),
      encodeCbor(new Map([['fmt', 'none']])),
      encodeCbor(
        new Map<string, string | Buffer>([
          ['fmt', 'none'],
          ['attStmt', 'x'],
          ['authData', Buffer.alloc(37)],
        ]),
      ),
      encodeCbor(
        new Map<string, string | Buffer>([
          ['fmt', 'none'],
          ['attStmt', 'x'],
          ['authData', randomBytes(300)],
        ]),
      ),
      randomBytes(5000),
    ]
    for (const [n, bomb] of bombs.entries()) {
      const credential = new Authenticator(ORIGIN).create(await requestCreation(account))
      const response = { ...credential.response, attestationObject: Buffer.from(bomb).toString('base64url') }
      const answer = await storePasskey(account, { ...credential, response })
      assert.deepEqual([answer.status, n], [bomb.length === 0 ? 422 : 400, n], answer.text)
    }
  })

  test('is invalid for input that no browser sends', async () => {
    const account = await newcomer()
    const credential = new Authenticator(ORIGIN).create(await requestCreation(account))
    const { response } = credential
    for (const wrong of [
      null,
      {},
      { ...credential, id: '' },
      { ...credential, id: 'a+b=' },
      { ...credential, type: 'password' },
      { ...credential, response: { ...response, clientDataJSON: 'x'.repeat(8001) } },
      { ...credential, response: { ...response, attestationObject: 'x'.repeat(60_001) } },
      { ...credential, response: { ...response, transports: ['<script>'] } },
    ])
      assert.equal((await storePasskey(account, wrong)).status, 422, JSON.stringify(wrong)?.slice(0, 80))
    for (const json of ['null', '7', '{}', '{"challenge":7}', '{"challenge":"YQ"}', 'x', '"\ud800"']) {
      const clientDataJSON = Buffer.from(json).toString('base64url')
      assertRefused(
        await storePasskey(account, { ...credential, response: { ...response, clientDataJSON } }),
        ...CREATION_REFUSED,
      )
    }
    assertRefused(await storePasskey(account, { ...credential, rawId: 'AAAA' }), ...CREATION_REFUSED)
  })

  test('is limited to 20 per account', async () => {
    const account = await newcomer()
    await query(
      `insert into passkey (id, account_id, credential_id, public_key, counter, transports, name, is_synced)
       select gen_random_uuid(), $1, sha256(gen_random_uuid()::text::bytea), '\\x01', 0, '{}', 'n', false from generate_series(1, 19)`,
      [account.id],
    )
    const asked = [await requestCreation(account), await requestCreation(account)]
    const made = await Promise.all(
      asked.map((options) => storePasskey(account, new Authenticator(ORIGIN).create(options))),
    )
    assert.deepEqual(made.map(({ status }) => status).sort(), [201, 409])
    const full = made.find(({ status }) => status === 409)!
    assert.deepEqual(full.json, {
      detail: 'An account can have at most 20 passkeys; delete one first',
      code: 'passkey.limit',
    })
    const page = await api.get(`${PASSKEYS}?limit=15`, { token: account.token })
    const next = /^<(.+)>; rel="next"$/.exec(String(page.headers.link))![1]!
    assert.equal((await api.get(next, { token: account.token })).json.length, 5)
  })
})

describe('signing in with a passkey', () => {
  test('starts a session as a password does, with an audit event', async () => {
    const { account, device, passkey } = await createHolder()
    const asked = await request(other)
    assert.deepEqual(Object.keys(asked).sort(), [
      'allowCredentials',
      'challenge',
      'rpId',
      'timeout',
      'userVerification',
    ])
    assert.deepEqual(
      [asked.rpId, asked.userVerification, asked.allowCredentials],
      ['mill.example.com', 'required', []],
    )
    const answer = await send(device.get(asked))
    assert.deepEqual([answer.status, answer.json.token_type], [200, 'bearer'], answer.text)
    assert.equal(answer.headers['cache-control'], 'no-store')
    assert.equal((await getMe(other, answer.cookie('millrace_session'))).json.id, account.id)
    assert.ok(answer.cookie('millrace_refresh').length > 20)
    const [event] = await query(
      `select data from audit_event where kind = 'account.signed_in' and account_id = $1 order by id desc limit 1`,
      [account.id],
    )
    const session = sessionIdOf(answer.json.access_token)
    assert.deepEqual(event!.data, { session, factor: 'passkey', passkey: passkey.id })
    const [{ last_used_at }] = await list(account)
    assert.ok(Math.abs(Date.parse(last_used_at) - Date.now()) < 60_000)
    const { last_login } = (await getMe(api, account.token)).json
    assert.ok(Math.abs(Date.parse(last_login) - Date.now()) < 60_000)
  })

  test('needs no code and is unaffected by failed logins of others', async () => {
    const { account, device } = await createHolder()
    await enableTotp(api, account)
    for (let i = 0; i < 5; i++) await logIn(api, account.email, 'wrong horse')
    assert.equal((await logIn(api, account.email)).status, 403)
    assert.equal((await signInWithPasskey(device)).status, 200)
  })

  test('accepts a challenge once, in time, and only one for sign-in', async () => {
    const { account, device } = await createHolder()
    const answer = device.get(await request())
    assert.equal((await send(answer)).status, 200)
    for (const edge of [api, other]) assertRefused(await send(answer, edge), ...SIGN_IN_REFUSED)
    const asked = await request()
    assertRefused(await send(device.get(asked, { origin: 'https://evil.example' })), ...SIGN_IN_REFUSED)
    assertRefused(await send(device.get(asked)), ...SIGN_IN_REFUSED)
    const registering = await requestCreation(account)
    assertRefused(await send(device.get({ ...registering, rpId: registering.rp.id })), ...SIGN_IN_REFUSED)
    const old = await request()
    await query('update passkey_challenge set expires_at = now()')
    assertRefused(await send(device.get(old)), ...SIGN_IN_REFUSED)
    assert.equal((await signInWithPasskey(device)).status, 200)
  })

  test('accepts one of several concurrent identical responses', async () => {
    for (const counts of [true, false]) {
      const { device } = await createHolder({ counts })
      const credential = device.get(await request())
      const answers = await Promise.all([api, other, api, other].map((edge) => send(credential, edge)))
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401, 401, 401])
    }
  })

  test('accepts one of two responses with the same counter', async () => {
    const { device } = await createHolder()
    const copies = [await request(), await request()].map((asked) => device.get(asked, { counter: 7 }))
    const answers = await Promise.all(copies.map((credential, n) => send(credential, [api, other][n])))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401])
  })

  test('is rejected if a used counter does not advance', async () => {
    const { device } = await createHolder()
    assert.equal((await signInWithPasskey(device, { counter: 10 })).status, 200)
    for (const counter of [10, 9, 0])
      assertRefused(await signInWithPasskey(device, { counter }), ...SIGN_IN_REFUSED)
    assert.equal((await signInWithPasskey(device, { counter: 11 })).status, 200)
    assert.equal((await signInWithPasskey(device, { counter: 2 ** 32 - 1 })).status, 200)
    const { device: uncounted } = await createHolder({ counts: false })
    for (let i = 0; i < 3; i++) assert.equal((await signInWithPasskey(uncounted)).status, 200)
  })

  for (const [what, twist] of [
    ['of another origin', { origin: 'https://evil.example' }],
    ['of a page without TLS', { origin: 'http://mill.example.com' }],
    ['for another relying party', { rpId: 'evil.example' }],
    ['that is an answer to a registration', { type: 'webauthn.create' }],
    ['without its user', { present: false }],
    ['without a PIN or a finger', { verified: false }],
    ['in a frame of another site', { crossOrigin: true, topOrigin: 'https://evil.example' }],
    ['with a signature of something else', { forged: true }],
    ['for another account', { userHandle: userHandleOf(1) }],
    ['for no account', { userHandle: 'AAAA' }],
  ] as const satisfies readonly (readonly [string, Deviation])[])
    test(`is rejected ${what}`, async () => {
      const { device } = await createHolder()
      assertRefused(await signInWithPasskey(device, twist), ...SIGN_IN_REFUSED)
    })

  test("is rejected with another account's key, or an unknown id", async () => {
    const [{ device: one }, { device: two, account }] = [await createHolder(), await createHolder()]
    const stolen = one.get(await request(), { userHandle: userHandleOf(account.id) })
    const id = two.id.toString('base64url')
    assertRefused(await send({ ...stolen, id, rawId: id }), ...SIGN_IN_REFUSED)
    const stranger = new Authenticator(ORIGIN)
    assertRefused(
      await send(stranger.get(await request(), { userHandle: userHandleOf(account.id) })),
      ...SIGN_IN_REFUSED,
    )
  })

  test('is rejected for a deleted passkey or account; a deactivated account gets the reason', async () => {
    const { account, device, passkey } = await createHolder()
    const { account: inactive, device: its } = await createHolder()
    const { account: gone, device: gones } = await createHolder()
    await api.call('DELETE', `${PASSKEYS}/${passkey.id}`, { token: account.token })
    assertRefused(await signInWithPasskey(device), ...SIGN_IN_REFUSED)
    await api.call('PATCH', `/api/v1/auth/users/${inactive.id}/deactivate`, { token: admin.token })
    assertRefused(await signInWithPasskey(its), 403, 'This account is deactivated')
    await api.call('DELETE', `/api/v1/auth/users/${gone.id}`, { token: admin.token })
    assertRefused(await signInWithPasskey(gones), ...SIGN_IN_REFUSED)
  })

  test('is invalid for input that no browser sends', async () => {
    const { device } = await createHolder()
    const credential = device.get(await request())
    const { response } = credential
    for (const wrong of [
      null,
      [],
      { ...credential, id: undefined },
      { ...credential, response: { ...response, userHandle: null } },
      { ...credential, response: { ...response, signature: 'ü' } },
    ])
      assert.equal((await send(wrong)).status, 422)
    for (const part of ['authenticatorData', 'signature'] as const) {
      const broken = { ...device.get(await request()) }
      assertRefused(
        await send({ ...broken, response: { ...broken.response, [part]: 'AAAA' } }),
        ...SIGN_IN_REFUSED,
      )
    }
  })

  test('is rejected from a page of another site', async () => {
    const { device } = await createHolder()
    const credential = device.get(await request())
    const answer = await api.post(`${PASSKEYS}/sign-in`, {
      json: { credential },
      headers: { origin: 'https://evil.example' },
    })
    assert.equal(answer.status, 403)
  })
})

describe('a passkey', () => {
  test('is renamed and deleted only by its owner', async () => {
    const { account, passkey, device } = await createHolder()
    const stranger = await newcomer()
    const at = (id: string) => `${PASSKEYS}/${id}`
    const rename = ({ token }: Account, id: string, name: unknown): Promise<Answered> =>
      api.call('PATCH', at(id), { token, json: { name } })
    for (const who of [stranger, admin]) {
      assertRefused(await rename(who, passkey.id, 'mine'), ...PASSKEY_MISSING)
      assertRefused(await api.call('DELETE', at(passkey.id), { token: who.token }), ...PASSKEY_MISSING)
    }
    for (const id of [randomUUID(), 'x', '1']) {
      assertRefused(await rename(account, id, 'x'), ...PASSKEY_MISSING)
      assertRefused(await api.call('DELETE', at(id), { token: account.token }), ...PASSKEY_MISSING)
    }
    for (const name of ['', ' ', 'n'.repeat(101), 7])
      assert.equal((await rename(account, passkey.id, name)).status, 422)
    const renamed = await rename(account, passkey.id, ' My phone ')
    assert.deepEqual(renamed.json, { ...passkey, name: 'My phone' })
    const signedIn = await signInWithPasskey(device)
    await query(`update session set created_at = now() - interval '1 hour' where account_id = $1`, [
      account.id,
    ])
    const remove = (json?: object) =>
      api.call('DELETE', at(passkey.id), { token: account.token, ...(json === undefined ? {} : { json }) })
    assert.equal((await remove()).status, 403, 'without a proof')
    assertRefused(await remove({ password: 'not it' }), 400, 'The password or the code is incorrect')
    assert.equal((await list(account)).length, 1)
    assert.equal((await remove({ password: PASSWORD })).status, 204)
    assert.deepEqual(await list(account), [])
    const notices = await query(
      `select payload ->> 'what' as what from job where name = 'accounts.notice' and payload -> 'account_id' = to_jsonb($1::int) order by ordinal`,
      [account.id],
    )
    assert.deepEqual(
      notices.map(({ what }) => what),
      ['passkey_added', 'passkey_deleted'],
    )
    assert.equal((await getMe(api, signedIn.json.access_token)).status, 200)
    const events = await query(
      `select kind from audit_event where account_id = $1 and kind like 'passkey.%' order by id`,
      [account.id],
    )
    assert.deepEqual(
      events.map(({ kind }) => kind),
      ['passkey.added', 'passkey.renamed', 'passkey.deleted'],
    )
  })
})

test('a service without a host name has no passkeys', async () => {
  const { token } = await newcomer()
  for (const PUBLIC_BASE_URL of ['http://127.0.0.1:8000', 'https://[2001:db8::1]']) {
    const edge = await startEdge(url, { env: { PUBLIC_BASE_URL } })
    const detail =
      'Passkeys need WEBAUTHN_RP_ID, or a PUBLIC_BASE_URL with a host name such as https://mill.example.com'
    for (const answer of [
      await edge.post(`${PASSKEYS}/options`, { token, json: {} }),
      await edge.post(`${PASSKEYS}/sign-in/options`),
    ])
      assert.deepEqual([answer.status, answer.json.detail], [503, detail])
  }
})
