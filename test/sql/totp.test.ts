import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { findCredentialsByEmail, lockAccount, recordLogin } from '../../sql/accounts/accounts.ts'
import { confirmTotp, deleteTotp, findTotp, insertTotp, setRecoveryCodes } from '../../sql/accounts/totp.ts'
import { decideLogin, type PresentedFactor } from '../../sql/limits/limits.ts'
import { SEALED_TEXT } from '../keys.ts'
import { until } from '../until.ts'
import { newAddress, sharedDatabase } from './shared-database.ts'

/**
 * A one-time code works once, even if parallel sign-ins use it, and only with the secret that it was checked against.
 */

const { db, query } = await sharedDatabase()
const [MAX, LOCK_SECONDS] = [3, 900]
const hashText = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Adds an account with one-time codes. `end` ends a sign-in whose password was right. */
async function addPerson() {
  const email = newAddress()
  const [row] = await query(`insert into account (email, password_hash) values ($1, 'hash') returning id`, [
    email,
  ])
  const id = row!.id as number
  const totpId = randomUUID()
  await db.run(insertTotp(totpId, id, SEALED_TEXT))
  await db.run(confirmTotp(totpId, 100, [hashText('one'), hashText('two')]))
  const end = async (given: Partial<PresentedFactor> = {}, matches = true) =>
    (
      await db.one(
        decideLogin(hashText(email), matches, MAX, LOCK_SECONDS, {
          totpId,
          step: null,
          recovery: null,
          ...given,
        }),
      )
    ).outcome
  const readFailures = async () =>
    (await query('select failures from login_failure where subject = $1', [hashText(email)]))[0]?.failures ??
    0
  return { id, email, totpId, end, failures: readFailures }
}

describe('a login with a second factor', () => {
  test('is incomplete without the factor, which changes nothing', async () => {
    const { end, failures } = await addPerson()
    assert.equal(await end(), 'incomplete')
    assert.equal(await end({ step: -1 }), 'wrong')
    assert.equal(await end(), 'incomplete')
    assert.equal(await failures(), 1)
  })

  test('accepts only later steps', async () => {
    const { end } = await addPerson()
    const ends = []
    for (const step of [100, 101, 101, 100, 103, 102]) ends.push(await end({ step }))
    assert.deepEqual(ends, ['wrong', 'ok', 'wrong', 'wrong', 'ok', 'wrong'])
  })

  test('accepts each recovery code once, and keeps the step', async () => {
    const { id, end } = await addPerson()
    assert.equal(await end({ recovery: hashText('one') }), 'ok')
    assert.equal(await end({ recovery: hashText('one') }), 'wrong')
    assert.equal(await end({ recovery: hashText('two') }), 'ok')
    const [row] = await query(
      'select last_step::int, recovery_codes from account_totp where account_id = $1',
      [id],
    )
    assert.deepEqual(row, { last_step: 100, recovery_codes: [] })
  })

  test('uses up nothing with a wrong password, or while the address is locked', async () => {
    const { end } = await addPerson()
    for (const expected of ['wrong', 'wrong', 'wrong, now locked'])
      assert.equal(await end({ step: 101 }, false), expected)
    assert.equal(await end({ step: 101 }), 'locked')
    assert.equal(await end({ recovery: hashText('one') }), 'locked')
    assert.equal(await end(), 'locked')
    await query('delete from login_failure')
    assert.equal(await end({ step: 101 }), 'ok')
    assert.equal(await end({ recovery: hashText('one') }), 'ok')
  })

  test('succeeds once for many concurrent attempts with the same code', async () => {
    const { end } = await addPerson()
    for (const given of [{ step: 101 }, { recovery: hashText('one') }]) {
      const ends = await Promise.all(Array.from({ length: 12 }, () => end(given)))
      assert.equal(ends.filter((one) => one === 'ok').length, 1, `${ends}`)
      await query('delete from login_failure')
    }
  })

  test('fails with a replaced secret', async () => {
    const { id, end } = await addPerson()
    await db.one(deleteTotp(id))
    await db.run(insertTotp(randomUUID(), id, SEALED_TEXT))
    assert.equal(await end({ step: 101 }), 'wrong')
    assert.equal(await end({ recovery: hashText('one') }), 'wrong')
  })
})

describe('accepts only the secret that was checked', () => {
  const checked = { passwordHash: 'hash', totpId: null }

  test('waits for the activation of codes if only the password was checked, and is rejected', async () => {
    const email = newAddress()
    const [row] = await query(`insert into account (email, password_hash) values ($1, 'hash') returning id`, [
      email,
    ])
    const id = row!.id as number
    const totpId = randomUUID()
    await db.run(insertTotp(totpId, id, SEALED_TEXT))
    assert.deepEqual(await db.maybeOne(recordLogin(id, checked)), { role: 'user', is_active: true })
    let isLocked = false
    const confirming = db.transaction(async (tx) => {
      await tx.one(lockAccount(id))
      isLocked = true
      await until('the login waits', async () => {
        const waiting = await query(`select from pg_stat_activity where datname = current_database()
          and wait_event_type = 'Lock' and query like '%login_record%'`)
        return waiting.length === 1
      })
      await tx.run(confirmTotp(totpId, 1, []))
    })
    await until('the account is locked', () => isLocked)
    assert.equal(await db.maybeOne(recordLogin(id, checked)), null)
    await confirming
    assert.notEqual(await db.maybeOne(recordLogin(id, { ...checked, totpId })), null)
    assert.equal((await db.one(findCredentialsByEmail(email))).totp?.id, totpId)
  })

  test('is rejected without changes if codes have been disabled', async () => {
    const { id, totpId } = await addPerson()
    await db.one(deleteTotp(id))
    assert.equal(await db.maybeOne(recordLogin(id, { ...checked, totpId })), null)
    const [row] = await query('select last_login from account where id = $1', [id])
    assert.equal(row!.last_login, null)
  })

  test('replaces only the compared hash by one with other parameters', async () => {
    const { id, totpId, email } = await addPerson()
    const touch = (passwordHash: string, rehashed: string) =>
      db.maybeOne(recordLogin(id, { passwordHash, totpId, rehashed }))
    assert.notEqual(await touch('hash', 'new hash'), null)
    assert.equal(await touch('hash', 'another hash'), null)
    assert.equal((await db.one(findCredentialsByEmail(email))).password_hash, 'new hash')
    await query('update account set is_active = false where id = $1', [id])
    assert.deepEqual(await touch('new hash', 'another hash'), { role: 'user', is_active: false })
    assert.equal((await db.one(findCredentialsByEmail(email))).password_hash, 'new hash')
  })
})

test('keeps an active secret, with its latest recovery codes', async () => {
  const { id, totpId } = await addPerson()
  await db.run(insertTotp(randomUUID(), id, SEALED_TEXT))
  assert.deepEqual(await db.maybeOne(findTotp(id)), { id: totpId, secret: SEALED_TEXT, is_on: true })
  await db.run(setRecoveryCodes(totpId, [hashText('three')]))
  const [row] = await query('select recovery_codes from account_totp where account_id = $1', [id])
  assert.deepEqual(row!.recovery_codes, [hashText('three')])
  const begun = randomUUID()
  await db.one(deleteTotp(id))
  await db.run(insertTotp(begun, id, SEALED_TEXT))
  assert.equal(await db.maybeOne(deleteTotp(id)), null, 'unconfirmed codes are not enabled')
})
