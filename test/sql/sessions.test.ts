import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import {
  countAdmins,
  findCredentialsByEmail,
  insertAccount,
  insertSession,
  refreshSession,
  revokeSession,
  upsertAdmin,
} from '../../sql/accounts/accounts.ts'
import { deleteAccount } from '../../sql/accounts/deletions.ts'
import { deleteExpiredRefreshTokens } from '../../sql/accounts/sessions.ts'
import { Failure } from '../../sql/errors.ts'
import { countRounds } from '../runs.ts'
import { newAddress, sharedDatabase } from './shared-database.ts'

const { db, query } = await sharedDatabase()

const hashText = (token: string): Buffer => createHash('sha256').update(token).digest()

async function addAccount(fields: { isActive?: boolean } = {}): Promise<number> {
  const row = await db.one(
    insertAccount({
      email: newAddress(),
      passwordHash: 'x',
      fullName: null,
      role: 'user',
      isActive: fields.isActive ?? true,
    }),
  )
  return row.id
}

/** Adds a session with its first token. */
async function addSession(accountId?: number, seconds = 60) {
  const id = randomUUID()
  const owner = accountId ?? (await addAccount())
  const token = `first ${id}`
  await db.run(
    insertSession(id, owner, hashText(token), seconds, {
      address: null,
      place: null,
      userAgent: null,
      device: null,
    }),
  )
  return { id, owner, token }
}

const exchangeToken = (presented: string, successor: string, seconds = 60) =>
  db.maybeOne(refreshSession(hashText(presented), hashText(successor), seconds))
const isRevoked = async (id: string): Promise<boolean> =>
  (await query('select revoked_at is not null as r from session where id = $1', [id]))[0]!.r as boolean

test('a session ends at its maximum lifetime, whatever was used meanwhile', async () => {
  const { id, token } = await addSession()
  const exchange = (presented: string, successor: string, longest: number | null) =>
    db.maybeOne(refreshSession(hashText(presented), hashText(successor), 1000, longest))
  const age = (seconds: number) =>
    query('update session set created_at = created_at - make_interval(secs => $2) where id = $1', [
      id,
      seconds,
    ])
  const readSecondsLeft = async (presented: string, successor: string, longest: number | null) =>
    (await exchange(presented, successor, longest))!.seconds_left
  const readSecondsToExpiry = async (of: string) =>
    (
      await query(
        'select extract(epoch from expires_at - now())::int as s from refresh_token where digest = $1',
        [hashText(of)],
      )
    )[0]!.s as number
  assert.equal(await readSecondsLeft(token, `2 ${id}`, null), null)
  await age(500)
  assert.ok([499, 500].includes((await readSecondsLeft(`2 ${id}`, `3 ${id}`, 1000))!))
  assert.ok((await readSecondsToExpiry(`3 ${id}`)) <= 500)
  await age(499)
  assert.ok([0, 1].includes((await readSecondsLeft(`3 ${id}`, `4 ${id}`, 1000))!))
  await age(1)
  assert.equal(await exchange(`4 ${id}`, `5 ${id}`, 1000), null)
  assert.equal(await exchange(`4 ${id}`, `5 ${id}`, 999), null)
  assert.equal(await isRevoked(id), false)
})

describe('sessions', () => {
  test('a token is exchanged for a successor with the same lifetime', async () => {
    const { id, owner, token } = await addSession(undefined, 10)
    assert.deepEqual(await exchangeToken(token, 'second', 1000), {
      account_id: owner,
      session_id: id,
      role: 'user',
      replayed: false,
      seconds_left: null,
    })
    const tokens = await query(
      `select rotated_at is null as current, expires_at > now() + interval '900 s' as late from refresh_token where session_id = $1 order by created_at`,
      [id],
    )
    assert.deepEqual(tokens, [
      { current: false, late: false },
      { current: true, late: true },
    ])
    for (let i = 2; i < 10; i++)
      assert.notEqual(await exchangeToken(i === 2 ? 'second' : `step ${i}`, `step ${i + 1}`), null)
  })

  test('a replay is reported only as such, and ends the family of thief and owner', async () => {
    const { id, owner, token } = await addSession()
    await exchangeToken(token, 'current')
    const replay = { account_id: owner, session_id: id, role: '', replayed: true, seconds_left: null }
    assert.deepEqual(await exchangeToken(token, 'stolen'), replay)
    assert.equal(await isRevoked(id), true)
    assert.equal(await exchangeToken(token, 'stolen'), null, 'the replay is reported once')
    assert.equal(await exchangeToken('current', 'next'), null)
    assert.deepEqual(
      await query('select 1 from refresh_token where digest = any($1)', [
        [hashText('stolen'), hashText('next')],
      ]),
      [],
    )
  })

  test('a replay leaves other sessions of the account', async () => {
    const owner = await addAccount()
    const [one, two] = [await addSession(owner), await addSession(owner)]
    await exchangeToken(one.token, 'one more')
    await exchangeToken(one.token, 'replay')
    assert.deepEqual([await isRevoked(one.id), await isRevoked(two.id)], [true, false])
    assert.notEqual(await exchangeToken(two.token, 'two more'), null)
  })

  test('unknown, expired, revoked tokens and those of inactive accounts return nothing, without a replay', async () => {
    assert.equal(await exchangeToken('never heard of', 'x1'), null)
    const expired = await addSession(undefined, -1)
    assert.equal(await exchangeToken(expired.token, 'x2'), null)
    assert.equal(await isRevoked(expired.id), false)
    const inactive = await addSession(await addAccount({ isActive: false }))
    assert.equal(await exchangeToken(inactive.token, 'x3'), null)
    const over = await addSession()
    await db.run(revokeSession(null, over.id))
    assert.equal(await exchangeToken(over.token, 'x4'), null)
    const gone = await addSession()
    await db.one(deleteAccount(gone.owner))
    assert.equal(await exchangeToken(gone.token, 'x5'), null)
    assert.deepEqual(await db.any(revokeSession(null, gone.id)), [])
    assert.deepEqual(
      await query('select 1 from refresh_token where digest = any($1)', [
        ['x1', 'x2', 'x3', 'x4', 'x5'].map(hashText),
      ]),
      [],
    )
  })

  test('a token cannot be its own successor', async () => {
    const { token } = await addSession()
    await assert.rejects(exchangeToken(token, token))
    assert.notEqual(await exchangeToken(token, 'another'), null)
  })

  test('one of many concurrent exchanges wins, and only its token can still be valid', async () => {
    for (let round = 0; round < countRounds(15); round++) {
      const { id, token } = await addSession()
      const names = Array.from({ length: 8 }, (_, i) => `${id} ${i}`)
      const answers = await Promise.all(names.map((name) => exchangeToken(token, name)))
      assert.equal(answers.filter((answer) => answer?.replayed === false).length, 1)
      assert.equal(answers.filter((answer) => answer?.replayed === true).length, 1)
      const current = await query(
        'select digest from refresh_token where session_id = $1 and rotated_at is null',
        [id],
      )
      const winner = names[answers.findIndex((answer) => answer?.replayed === false)]!
      assert.deepEqual(
        current.map((row) => row.digest),
        [hashText(winner)],
      )
      assert.equal(await isRevoked(id), true, 'the others were replays')
      assert.deepEqual(
        (await Promise.all([token, ...names].map((name) => exchangeToken(name, `late ${name}`)))).filter(
          Boolean,
        ),
        [],
      )
    }
  })

  test("concurrent use of a family's tokens never leaves two valid ones", async () => {
    for (let round = 0; round < countRounds(10); round++) {
      const { id, token } = await addSession()
      const known = [token]
      await Promise.all(
        Array.from({ length: 6 }, async (_, user) => {
          for (let i = 0; i < 5; i++) {
            const name = `${id} ${user} ${i}`
            const last = known.at(-1)!
            if ((await exchangeToken(last, name))?.replayed === false) known.push(name)
          }
        }),
      )
      const [row] = await query(
        'select count(*)::int as n from refresh_token where session_id = $1 and rotated_at is null',
        [id],
      )
      assert.equal(row!.n, 1)
    }
  })

  test('signing out takes a refresh token, a session, both or neither', async () => {
    const [one, two, three] = [await addSession(), await addSession(), await addSession()]
    await db.run(revokeSession(hashText(one.token), null))
    await db.run(revokeSession(null, two.id))
    await db.run(revokeSession(null, null))
    await db.run(revokeSession(hashText('unknown'), randomUUID()))
    assert.deepEqual(await Promise.all([one, two, three].map(({ id }) => isRevoked(id))), [true, true, false])
    await exchangeToken(three.token, 'three more')
    await db.run(revokeSession(hashText(three.token), null))
    assert.equal(await isRevoked(three.id), true, 'by a token that was exchanged already, too')
  })

  test('expired tokens are deleted in batches, and sessions with their last token', async () => {
    await query('delete from session')
    const [old, mixed] = [await addSession(undefined, -10), await addSession(undefined, -10)]
    await query(
      `insert into refresh_token (digest, session_id, expires_at, rotated_at) select sha256(n::text::bytea), $1, now() - interval '1 h', now() from generate_series(1, 25) n`,
      [old.id],
    )
    await query(
      `insert into refresh_token (digest, session_id, expires_at, rotated_at) values (sha256('fresh'), $1, now() + interval '1 h', now())`,
      [mixed.id],
    )
    const counts: number[] = []
    for (let i = 0; i < 4; i++) counts.push((await db.one(deleteExpiredRefreshTokens(10))).count)
    assert.deepEqual(counts, [10, 10, 7, 0])
    assert.deepEqual(await query('select id from session'), [{ id: mixed.id }])
  })
})

describe('accounts', () => {
  test('an email address belongs to one account, and a duplicate has its own error', async () => {
    const first = {
      email: 'same@example.com',
      passwordHash: 'x',
      fullName: 'N',
      role: 'user' as const,
      isActive: true,
    }
    const made = await db.one(insertAccount(first))
    assert.deepEqual(
      { ...JSON.parse(made.json), created_at: '', id: 0 },
      {
        id: 0,
        email: 'same@example.com',
        full_name: 'N',
        is_active: true,
        is_verified: false,
        role: 'user',
        last_login: null,
        created_at: '',
        updated_at: null,
        deletion_at: null,
      },
    )
    await assert.rejects(
      db.one(insertAccount(first)),
      (error) => error instanceof Failure && error.code === 'account.email_taken',
    )
    assert.deepEqual(await db.maybeOne(findCredentialsByEmail('same@example.com')), {
      id: made.id,
      password_hash: 'x',
      role: 'user',
      is_active: true,
      totp: null,
    })
    assert.equal(await db.maybeOne(findCredentialsByEmail('other@example.com')), null)
    const { admins } = await db.one(countAdmins())
    await db.one(insertAccount({ ...first, email: newAddress(), role: 'admin', isActive: false }))
    assert.deepEqual(await db.one(countAdmins()), { admins })
    await db.one(insertAccount({ ...first, email: newAddress(), role: 'admin' }))
    assert.deepEqual(await db.one(countAdmins()), { admins: admins + 1 })
  })

  test('the configured admin is created or activated, with its own password once its address is verified', async () => {
    const upsert = async (hash: string, asItIs = false) =>
      (await db.maybeOne(upsertAdmin('root@example.com', hash, asItIs)))?.change
    const now = async () => {
      const [row] = await query(
        `select role, is_active, is_verified, password_hash from account where email = 'root@example.com'`,
      )
      return Object.values(row!)
    }
    assert.equal(await upsert('hash 1'), 'created')
    assert.equal(await upsert('hash 2'), undefined)
    // The last active admin cannot lose the role, so the test adds another one.
    await db.maybeOne(upsertAdmin('second@example.com', 'hash'))
    await query(`update account set role = 'user', is_active = false where email = 'root@example.com'`)
    assert.equal(await upsert('hash 3'), 'promoted')
    assert.deepEqual(await now(), ['admin', true, true, 'hash 1'])
    await query(`update account set role = 'user', is_verified = false where email = 'root@example.com'`)
    assert.equal(await upsert('hash 4', true), 'promoted')
    assert.deepEqual(await now(), ['admin', true, false, 'hash 1'])
    assert.equal(await upsert('hash 5'), 'replaced')
    assert.deepEqual(await now(), ['admin', true, true, 'hash 5'])
  })
})
