import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import {
  deleteExpiredMailedTokens,
  findMailedToken,
  insertAccount,
  insertMailedToken,
  lockCredentials,
  type MailedTokenKind,
  markAddressVerified,
  recordLogin,
  redeemMailedToken,
  setPassword,
} from '../../sql/accounts/accounts.ts'
import { deleteAccount } from '../../sql/accounts/deletions.ts'
import { connect } from '../../sql/connections/driver.ts'
import { countRounds } from '../runs.ts'
import { until } from '../until.ts'
import { newAddress, sharedDatabase } from './shared-database.ts'

const { db, query, url } = await sharedDatabase()
const hashText = (token: string): Buffer => createHash('sha256').update(token).digest()

async function addAccount(): Promise<{ id: number; email: string }> {
  const email = newAddress()
  const made = { email, passwordHash: 'first hash', fullName: null, role: 'user', isActive: true } as const
  const { id } = await db.one(insertAccount(made))
  return { id, email }
}

/** Stores a token as the task does. `again` stores the same token again, as another attempt of the job does. */
async function addToken(accountId: number, kind: MailedTokenKind = 'reset', seconds = 60) {
  const id = randomUUID()
  const key = hashText(id)
  const store = () => db.maybeOne(insertMailedToken(id, accountId, kind, key, seconds))
  assert.notEqual(await store(), null)
  return {
    id,
    again: store,
    look: (as: MailedTokenKind = kind) => db.maybeOne(findMailedToken(as, key)),
    use: (as: MailedTokenKind = kind) => db.maybeOne(redeemMailedToken(as, key)),
  }
}

describe('mailed tokens', () => {
  test('a token identifies its account and is used once', async () => {
    const owner = await addAccount()
    const token = await addToken(owner.id)
    const whose = { account_id: owner.id, email: owner.email }
    assert.deepEqual(await token.look(), whose)
    assert.deepEqual(await token.look(), whose, 'looking does not use it')
    assert.deepEqual(await token.use(), whose)
    assert.deepEqual([await token.look(), await token.use()], [null, null])
  })

  test('a token of the wrong kind, expired or unknown is rejected, and stays unused', async () => {
    const { id } = await addAccount()
    const [reset, verify] = [await addToken(id, 'reset'), await addToken(id, 'verify')]
    assert.deepEqual([await reset.look('verify'), await reset.use('verify')], [null, null])
    assert.deepEqual([await verify.look('reset'), await verify.use('reset')], [null, null])
    assert.ok((await reset.look()) !== null && (await verify.look()) !== null)
    const expired = await addToken(id, 'reset', -1)
    assert.deepEqual([await expired.look(), await expired.use()], [null, null])
    assert.notEqual(await reset.look(), null, 'nor does an expired one use up the others')
    assert.equal(await db.maybeOne(redeemMailedToken('reset', hashText('unknown'))), null)
  })

  test('using a token uses up all others of its kind and account', async () => {
    const [one, other] = [await addAccount(), await addAccount()]
    const [first, second] = [await addToken(one.id), await addToken(one.id)]
    const [verify, foreign] = [await addToken(one.id, 'verify'), await addToken(other.id)]
    await second.use()
    assert.equal(await first.use(), null)
    assert.ok((await verify.use()) !== null && (await foreign.use()) !== null)
  })

  test('one of 20 concurrent uses succeeds', async () => {
    for (let round = 0; round < countRounds(15); round++) {
      const token = await addToken((await addAccount()).id)
      const used = await Promise.all(Array.from({ length: 20 }, () => token.use()))
      assert.equal(used.filter((one) => one !== null).length, 1)
    }
  })

  test('two tokens of one account, used concurrently, neither both work nor deadlock', async () => {
    const [before] = await query('select deadlocks from pg_stat_database where datname = current_database()')
    for (let round = 0; round < countRounds(20); round++) {
      const { id } = await addAccount()
      const tokens = await Promise.all(Array.from({ length: 4 }, () => addToken(id)))
      // Each transaction goes on after it has used the token, as a password reset does.
      const used = await Promise.all(
        tokens.map((token) =>
          db.transaction(async (tx) => {
            const owner = await tx.maybeOne(redeemMailedToken('reset', hashText(token.id)))
            if (owner !== null) await tx.maybeOne(setPassword(id, `hash ${round}`))
            return owner
          }),
        ),
      )
      assert.equal(used.filter((one) => one !== null).length, 1)
    }
    await query('select pg_stat_force_next_flush()')
    const [now] = await query('select deadlocks from pg_stat_database where datname = current_database()')
    assert.deepEqual(now, before)
  })

  test('a repeated attempt stores an unused token again, but never revives a used one', async () => {
    const token = await addToken((await addAccount()).id)
    await query(`update account_token set expires_at = now() + interval '1 s' where id = $1`, [token.id])
    assert.notEqual(await token.again(), null)
    const [row] = await query(
      `select expires_at > now() + interval '50 s' as whole from account_token where id = $1`,
      [token.id],
    )
    assert.equal(row!.whole, true)
    assert.notEqual(await token.use(), null)
    assert.equal(await token.again(), null)
    assert.deepEqual([await token.look(), await token.use()], [null, null])
  })

  test('tokens are deleted with their account, and expired ones are pruned', async () => {
    await query('delete from account_token')
    const [gone, owner] = [await addAccount(), await addAccount()]
    const orphan = await addToken(gone.id)
    await db.one(deleteAccount(gone.id))
    assert.deepEqual([await orphan.look(), await orphan.use()], [null, null])
    await query('delete from account where id = $1', [gone.id])
    assert.deepEqual([await orphan.look(), await orphan.use()], [null, null])
    const live = await addToken(owner.id, 'verify')
    const used = await addToken(owner.id)
    await used.use()
    for (let i = 0; i < 3; i++) await addToken(owner.id, 'reset', -1)
    const counts: number[] = []
    for (let i = 0; i < 3; i++) counts.push((await db.one(deleteExpiredMailedTokens(2))).count)
    assert.deepEqual(counts, [2, 1, 0])
    assert.deepEqual([(await live.look()) !== null, await used.again()], [true, null])
    await query(`update account_token set expires_at = now() - interval '1 s' where id = $1`, [used.id])
    assert.equal((await db.one(deleteExpiredMailedTokens(2))).count, 1)
  })
})

describe('a token for an address', () => {
  test('is stored only while the account has that address, also during a change', async () => {
    const { id, email } = await addAccount()
    const store = (address: string) =>
      db.maybeOne(insertMailedToken(randomUUID(), id, 'reset', hashText(randomUUID()), 60, address))
    assert.notEqual(await store(email), null)
    assert.equal(await store('other@example.com'), null)
    const changing = await connect({ url, applicationName: 'changing' })
    after(() => changing.end())
    await changing.query('begin')
    await changing.query('update account set email = $2 where id = $1', [id, newAddress()])
    const storing = store(email)
    await until('the token waits for the change', async () => {
      const [row] = await query(`select count(*)::int as n from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%account_token%'`)
      return row!.n === 1
    })
    await changing.query('commit')
    assert.equal(await storing, null)
  })
})

describe('passwords', () => {
  test('a password that changed since its comparison neither signs in nor changes again', async () => {
    const { id, email } = await addAccount()
    assert.deepEqual(await db.maybeOne(recordLogin(id, { passwordHash: 'first hash', totpId: null })), {
      role: 'user',
      is_active: true,
    })
    assert.deepEqual(await db.maybeOne(lockCredentials(id, 'first hash')), { email })
    assert.deepEqual(await db.maybeOne(lockCredentials(id, null)), { email })
    await db.one(setPassword(id, 'second hash'))
    assert.equal(await db.maybeOne(recordLogin(id, { passwordHash: 'first hash', totpId: null })), null)
    assert.equal(await db.maybeOne(lockCredentials(id, 'first hash')), null)
    assert.deepEqual(await query('select password_hash from account where id = $1', [id]), [
      { password_hash: 'second hash' },
    ])
    await db.run(markAddressVerified(id))
    await query('update account set is_active = false where id = $1', [id])
    assert.deepEqual(await db.maybeOne(recordLogin(id, { passwordHash: 'second hash', totpId: null })), {
      role: 'user',
      is_active: false,
    })
  })
})
