import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { z } from 'zod'
import { lockAccount } from '../../sql/accounts/accounts.ts'
import { connect } from '../../sql/connections/driver.ts'
import { ACCOUNT_CHANGED_CHANNEL, listen } from '../../sql/connections/notify.ts'
import { type Queries, sql } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import {
  deleteApiKey,
  deleteExpiredApiKeys,
  insertApiKey,
  recordKeyUse,
  reserveRequests,
} from '../../sql/keys/api-keys.ts'
import { markOrganizationDeleted } from '../../sql/orgs/orgs.ts'
import { digestOf } from '../../tasks/accounts/tokens.ts'
import { until } from '../until.ts'
import { newAccount, sharedDatabase } from './shared-database.ts'

/** API keys in the database: expiry, revocation, last use and rate limits. */

const { db, query, url } = await sharedDatabase()
const addAccount = () => newAccount({ query })

async function addKey(accountId: number, organizationId: number | null = null): Promise<string> {
  const id = uuidv7()
  const more = { name: 'n', digest: digestOf(id), hint: id.slice(-4), scopes: ['*:write'], expiresAt: null }
  await db.one(insertApiKey({ id, accountId, organizationId, ...more }))
  return id
}

async function addOrganization(...members: number[]): Promise<number> {
  const [row] = await query(`insert into organization (name, slug) values ('n', $1) returning id`, [
    `o-${randomUUID()}`,
  ])
  for (const member of members)
    await query(`insert into organization_member (organization_id, user_id, role) values ($1, $2, 'owner')`, [
      row!.id,
      member,
    ])
  return row!.id as number
}

const keyExists = async (id: string): Promise<boolean> =>
  (await query('select from api_key where id = $1', [id])).length === 1

describe('the end of a key notifies every edge', async () => {
  const notified: string[] = []
  const listener = await listen({
    url,
    applicationName: 'test-listen',
    channels: { [ACCOUNT_CHANGED_CHANNEL]: (payload) => notified.push(payload) },
    onReconnect: () => {},
    onError: () => {},
  })
  after(() => listener.close())
  const assertNotified = (id: number) =>
    until(`account ${id} is notified`, () => notified.includes(String(id)))

  test('sends a notification when the key is deleted', async () => {
    const owner = await addAccount()
    assert.notEqual(await db.maybeOne(deleteApiKey(await addKey(owner))), null)
    await assertNotified(owner)
  })

  test('the end of a membership deletes the keys of that organization only', async () => {
    const owner = await addAccount()
    const [left, stayed] = [await addOrganization(owner, await addAccount()), await addOrganization(owner)]
    const keys = [await addKey(owner), await addKey(owner, stayed), await addKey(owner, left)]
    await query('delete from organization_member where organization_id = $1 and user_id = $2', [left, owner])
    await assertNotified(owner)
    assert.deepEqual(await Promise.all(keys.map(keyExists)), [true, true, false])
  })

  test('the deletion of an organization deletes its keys immediately', async () => {
    const owner = await addAccount()
    const id = await addOrganization(owner)
    const [own, its] = [await addKey(owner), await addKey(owner, id)]
    await db.one(markOrganizationDeleted(id))
    await assertNotified(owner)
    assert.deepEqual([await keyExists(own), await keyExists(its)], [true, false])
  })
})

test('only a member can have a key of an organization', async () => {
  const id = await addOrganization(await addAccount())
  await assert.rejects(addKey(await addAccount(), id))
})

const countKeys = (owner: number) =>
  sql.type(
    z.object({ count: z.number() }),
  )`select count(*)::int as count from api_key where account_id = ${owner}`

test('changes to the keys of an account are serialized, and see each other', async () => {
  const owner = await addAccount()
  const lockAndCount = (tx: Queries) => tx.maybeOne(lockAccount(owner)).then(() => tx.one(countKeys(owner)))
  let isLocked = false
  const first = db.transaction(async (tx) => {
    assert.deepEqual(await lockAndCount(tx), { count: 0 })
    isLocked = true
    await until('the other change waits', async () => {
      const waiting = await query(`select from pg_stat_activity where datname = current_database()
        and wait_event_type = 'Lock' and query like '%from account where id%'`)
      return waiting.length === 1
    })
    const id = uuidv7()
    const more = { name: 'n', digest: digestOf(id), hint: 'abcd', scopes: ['*:read'], expiresAt: null }
    await tx.one(insertApiKey({ id, accountId: owner, organizationId: null, ...more }))
  })
  await until('the first change has the lock', () => isLocked)
  assert.deepEqual(await db.transaction(lockAndCount), { count: 1 })
  await first
  assert.equal(await db.maybeOne(lockAccount(999_999)), null)
})

describe('the last use of keys', () => {
  const readUsedAt = async (id: string) =>
    (await query('select last_used_at as at from api_key where id = $1', [id]))[0]!.at as Date | null

  test('is recorded for several keys in one statement, at most every 30 seconds', async () => {
    const owner = await addAccount()
    const [one, two, unused] = [await addKey(owner), await addKey(owner), await addKey(owner)]
    await db.run(recordKeyUse([two, one, randomUUID()]))
    const noted = await readUsedAt(one)
    assert.ok(noted !== null && (await readUsedAt(two)) !== null)
    assert.equal(await readUsedAt(unused), null)
    await db.run(recordKeyUse([one]))
    assert.deepEqual(await readUsedAt(one), noted)
    await query(`update api_key set last_used_at = now() - interval '31 seconds' where id = $1`, [one])
    await db.run(recordKeyUse([one]))
    // Both times may fall into the same millisecond.
    assert.ok((await readUsedAt(one))! >= noted)
  })

  test('is left to another edge that is recording it', async () => {
    const one = await addKey(await addAccount())
    const other = await connect({ url, applicationName: 'another edge' })
    try {
      await other.query('begin')
      await other.query('select from api_key where id = $1 for no key update', [one])
      await db.run(recordKeyUse([one]))
      assert.equal(await readUsedAt(one), null)
    } finally {
      await other.end()
    }
  })
})

describe('the rate limit of a key', () => {
  const reserve = (id: string, max: number, wanted: number) => db.one(reserveRequests(id, max, 3600, wanted))
  const age = (id: string, seconds: number) =>
    query('update api_key_allowance set began_at = began_at - make_interval(secs => $2) where key_id = $1', [
      id,
      seconds,
    ])
  const given = ({ granted, remaining }: { granted: number; remaining: number }) => [granted, remaining]

  test('grants requests until the limit is reached', async () => {
    const one = await addKey(await addAccount())
    assert.deepEqual(given(await reserve(one, 10, 4)), [4, 6])
    assert.deepEqual(given(await reserve(one, 10, 4)), [4, 2])
    assert.deepEqual(given(await reserve(one, 10, 4)), [2, 0])
    const last = await reserve(one, 10, 4)
    assert.deepEqual(given(last), [0, 0])
    assert.ok(last.reset_ms > 3_540_000 && last.reset_ms <= 3_600_000, `${last.reset_ms} ms`)
  })

  test('grants requests again in the next period, which begins with its first request', async () => {
    const one = await addKey(await addAccount())
    await reserve(one, 10, 10)
    await age(one, 3540)
    const late = await reserve(one, 10, 1)
    assert.deepEqual(given(late), [0, 0])
    assert.ok(late.reset_ms <= 60_000, `${late.reset_ms} ms`)
    await age(one, 60)
    const next = await reserve(one, 10, 3)
    assert.deepEqual(given(next), [3, 7])
    assert.ok(next.reset_ms > 3_599_000, `${next.reset_ms} ms`)
  })

  test('never grants more than the limit to concurrent callers', async () => {
    const one = await addKey(await addAccount())
    const all = await Promise.all(Array.from({ length: 50 }, () => reserve(one, 100, 7)))
    assert.equal(
      all.reduce((sum, { granted }) => sum + granted, 0),
      100,
    )
  })

  test('grants nothing more after it was lowered below the granted number', async () => {
    const one = await addKey(await addAccount())
    await reserve(one, 100, 50)
    assert.deepEqual(given(await reserve(one, 20, 5)), [0, 0])
  })
})

test('keys are deleted 30 days after they expired', async () => {
  const owner = await addAccount()
  const keys = [await addKey(owner), await addKey(owner), await addKey(owner)]
  await query(`update api_key set expires_at = now() - interval '31 days' where id = $1`, [keys[0]])
  await query(`update api_key set expires_at = now() - interval '29 days' where id = $1`, [keys[1]])
  assert.deepEqual(await db.one(deleteExpiredApiKeys(10)), { count: 1 })
  assert.deepEqual(await Promise.all(keys.map(keyExists)), [false, true, true])
})
