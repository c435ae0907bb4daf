import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import pg from 'pg'
import {
  decideLogin,
  deleteOldLoginFailures,
  deriveLoginSubject,
  findLoginLock,
  unlockLogin,
} from '../../sql/limits/limits.ts'
import { waitForLock } from '../database.ts'
import { countRounds } from '../runs.ts'
import { newAddress, sharedDatabase } from './shared-database.ts'

const { db, query, url } = await sharedDatabase()
const MAX_FAILURES = 5
const LOCK_SECONDS = 900

/**
 * Returns functions that sign in with a new address. No account needs to have that address, because the lock counts
 * addresses.
 */
function createAddress() {
  const subject = createHash('sha256').update(randomUUID()).digest()
  const end = async (matches: boolean, max = MAX_FAILURES): Promise<string> =>
    (await db.one(decideLogin(subject, matches, max, LOCK_SECONDS))).outcome
  return {
    subject,
    right: () => end(true),
    wrong: (max?: number) => end(false, max),
    row: async () => (await query('select * from login_failure where subject = $1', [subject]))[0],
    /** Moves all failures `seconds` into the past. */
    age: (seconds: number) =>
      query(
        `update login_failure set failed_at = failed_at - make_interval(secs => $2),
          locked_until = locked_until - make_interval(secs => $2) where subject = $1`,
        [subject, seconds],
      ),
  }
}

async function repeat<T>(n: number, work: () => Promise<T>): Promise<T[]> {
  const all: T[] = []
  for (let i = 0; i < n; i++) all.push(await work())
  return all
}

test('a known device is counted separately, and unlocked with its address', async () => {
  const [one, other] = [createAddress(), createAddress()]
  const device = createHash('sha256').update('a device').digest()
  const known = deriveLoginSubject(one.subject, device)
  assert.equal(known.length, 32)
  assert.deepEqual(deriveLoginSubject(one.subject, null), one.subject)
  const end = async (subject: Buffer) => (await db.one(decideLogin(subject, false, 1, LOCK_SECONDS))).outcome
  const isLocked = async (subject: Buffer) => (await db.maybeOne(findLoginLock(subject)))?.locked ?? false
  assert.equal(await one.wrong(1), 'wrong, now locked')
  assert.deepEqual([await isLocked(one.subject), await isLocked(known)], [true, false])
  assert.equal(await end(known), 'wrong, now locked')
  assert.equal(await end(deriveLoginSubject(one.subject, createHash('sha256').digest())), 'wrong, now locked')
  assert.equal(await other.wrong(1), 'wrong, now locked')
  assert.equal(await db.run(unlockLogin(one.subject)), 3)
  assert.deepEqual([await isLocked(known), await isLocked(other.subject)], [false, true])
  await other.age(LOCK_SECONDS)
  assert.equal(await isLocked(other.subject), false)
})

describe('failed sign-ins', () => {
  test('lock at exactly the last allowed failure, and then reject the right password too', async () => {
    const one = createAddress()
    assert.deepEqual(await repeat(MAX_FAILURES - 1, one.wrong), Array(MAX_FAILURES - 1).fill('wrong'))
    assert.equal(await one.wrong(), 'wrong, now locked')
    const before = await one.row()
    assert.deepEqual(
      [await one.right(), await one.wrong(), await one.right()],
      ['locked', 'locked', 'locked'],
    )
    assert.deepEqual(await one.row(), before, 'and asking does not prolong it')
    const [left] = await query(
      'select round(extract(epoch from locked_until - failed_at))::int as s from login_failure where subject = $1',
      [one.subject],
    )
    assert.equal(left!.s, LOCK_SECONDS)
  })

  test('lock at the first failure if one is allowed', async () => {
    const one = createAddress()
    assert.equal(await one.wrong(1), 'wrong, now locked')
    assert.equal(await one.right(), 'locked')
  })

  test('are forgotten after a success before the limit', async () => {
    const one = createAddress()
    await repeat(MAX_FAILURES - 1, one.wrong)
    assert.equal(await one.right(), 'ok')
    assert.equal(await one.row(), undefined)
    assert.deepEqual(await repeat(MAX_FAILURES - 1, one.wrong), Array(MAX_FAILURES - 1).fill('wrong'))
    assert.equal(await one.wrong(), 'wrong, now locked')
  })

  test('unlock after exactly the lock time, and are counted from zero again', async () => {
    const one = createAddress()
    await repeat(MAX_FAILURES, one.wrong)
    await one.age(LOCK_SECONDS - 60)
    assert.equal(await one.right(), 'locked')
    await one.age(60)
    assert.equal(await one.right(), 'ok')

    const other = createAddress()
    await repeat(MAX_FAILURES, other.wrong)
    await other.age(LOCK_SECONDS)
    assert.deepEqual(await repeat(MAX_FAILURES - 1, other.wrong), Array(MAX_FAILURES - 1).fill('wrong'))
    assert.equal(await other.wrong(), 'wrong, now locked')
  })

  test('are ignored when older than the lock time', async () => {
    const [old, young] = [createAddress(), createAddress()]
    await repeat(MAX_FAILURES - 1, old.wrong)
    await old.age(LOCK_SECONDS)
    assert.deepEqual(await repeat(MAX_FAILURES - 1, old.wrong), Array(MAX_FAILURES - 1).fill('wrong'))
    await repeat(MAX_FAILURES - 1, young.wrong)
    await young.age(LOCK_SECONDS - 60)
    assert.equal(await young.wrong(), 'wrong, now locked')
  })

  test('are counted per address, and an admin can unlock one', async () => {
    const [one, other] = [createAddress(), createAddress()]
    await repeat(MAX_FAILURES, one.wrong)
    assert.equal(await other.right(), 'ok')
    await db.run(unlockLogin(one.subject))
    assert.equal(await one.right(), 'ok')
  })

  test('allow exactly the limit among 100 concurrent wrong guesses, one of which reports the lock', async () => {
    const one = createAddress()
    const outcomes = await Promise.all(Array.from({ length: 100 }, () => one.wrong()))
    const count = (outcome: string): number => outcomes.filter((one) => one === outcome).length
    assert.deepEqual(
      [count('wrong'), count('wrong, now locked'), count('locked')],
      [MAX_FAILURES - 1, 1, 100 - MAX_FAILURES],
    )
  })

  test('reveal no more than one lock allows among 100 concurrent guesses with the right one', async () => {
    for (let round = 0; round < countRounds(12); round++) {
      const one = createAddress()
      const told: { outcome: string; at: number; until: number }[] = []
      await Promise.all(
        Array.from({ length: 100 }, async (_, i) => {
          const at = performance.now()
          const outcome = i === (round * 21) % 100 ? await one.right() : await one.wrong()
          told.push({ outcome, at, until: performance.now() })
        }),
      )
      const wrong = told.filter(({ outcome }) => outcome.startsWith('wrong')).length
      const locks = told.filter(({ outcome }) => outcome === 'wrong, now locked')
      const right = told.find(({ outcome }) => outcome === 'ok')
      assert.equal(locks.length, 1)
      // A correct password resets the count. This does not help attackers: they already know the password.
      assert.ok(
        wrong >= MAX_FAILURES && wrong <= MAX_FAILURES + (right === undefined ? 0 : MAX_FAILURES - 1),
        `${wrong} rejected as wrong`,
      )
      if (right === undefined) assert.equal(wrong, MAX_FAILURES)
      else
        assert.ok(right.at < locks[0]!.until, 'no request after the lock learns that the password was right')
      assert.equal(await one.right(), 'locked')
    }
  })

  test('keep a lock that came while the right password was checked, which is rejected', async (t) => {
    const one = createAddress()
    const totpId = randomUUID()
    await query(
      `with a as (insert into account (email, password_hash) values ($2, 'x') returning id)
       insert into account_totp (secret, id, account_id, confirmed_at) select 'aaaaaaaa.AAAA', $1, id, now() from a`,
      [totpId, newAddress()],
    )
    const holder = new pg.Client({ connectionString: url })
    await holder.connect()
    t.after(() => holder.end())
    await holder.query('begin')
    await holder.query('select from account_totp where id = $1 for update', [totpId])
    // This sign-in has seen no failure, and waits for the second factor.
    const ending = db.one(
      decideLogin(one.subject, true, MAX_FAILURES, LOCK_SECONDS, { totpId, step: 1, recovery: null }),
    )
    await waitForLock(query)
    assert.equal((await repeat(MAX_FAILURES, one.wrong)).at(-1), 'wrong, now locked')
    await holder.query('commit')
    assert.equal((await ending).outcome, 'locked')
    assert.equal(await one.right(), 'locked')
  })

  test('are pruned with ended locks, but not with active ones', async () => {
    await query('truncate login_failure')
    const [old, young, locked, ended] = [createAddress(), createAddress(), createAddress(), createAddress()]
    await old.wrong()
    await old.age(LOCK_SECONDS + 1)
    await young.wrong()
    for (const one of [locked, ended]) await repeat(MAX_FAILURES, one.wrong)
    await query(`update login_failure set failed_at = now() - interval '2 h' where subject = $1`, [
      locked.subject,
    ])
    await ended.age(LOCK_SECONDS + 1)
    assert.equal((await db.one(deleteOldLoginFailures(LOCK_SECONDS, 1))).count, 1)
    assert.equal((await db.one(deleteOldLoginFailures(LOCK_SECONDS, 10))).count, 1)
    assert.deepEqual(
      [(await old.row()) === undefined, (await young.row())?.failures, (await ended.row()) === undefined],
      [true, 1, true],
    )
    assert.equal(await locked.right(), 'locked')
  })
})
