import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Queries } from '../../sql/db.ts'
import { Failure } from '../../sql/errors.ts'
import {
  deleteMember,
  findMember,
  insertMember,
  insertOrganization,
  lockOrganization,
  markOrganizationDeleted,
  setMemberRole,
} from '../../sql/orgs/orgs.ts'
import { runPurge } from '../purge.ts'
import { countRounds } from '../runs.ts'
import { until } from '../until.ts'
import { newAccount, sharedDatabase } from './shared-database.ts'

/**
 * An organization keeps an owner under concurrent changes. Locking the organization returns its state after those
 * changes.
 */

const { db, query } = await sharedDatabase()
const addAccount = () => newAccount({ query })
const assertFails = (code: string, action: Promise<unknown>) =>
  assert.rejects(action, (error) => error instanceof Failure && error.code === code)

/** Adds an organization with `owners` owners and one plain member. */
async function addOrganization(owners: number) {
  const ids = await Promise.all(Array.from({ length: owners }, addAccount))
  const { id } = await db.one(
    insertOrganization({
      name: 'N',
      slug: `o-${randomUUID()}`,
      description: null,
      isActive: true,
      ownerId: ids[0]!,
    }),
  )
  for (const user of ids.slice(1)) await db.one(insertMember(id, user, 'owner'))
  const other = await addAccount()
  await db.one(insertMember(id, other, 'member'))
  return { id, owners: ids, other }
}
const countOwners = async (id: number): Promise<number> =>
  (
    await query(
      `select count(*)::int as n from organization_member where organization_id = $1 and role = 'owner'`,
      [id],
    )
  )[0]!.n as number

/** Counts statements that wait for a lock. */
const countWaiting = async (): Promise<number> =>
  (
    await query(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
  )[0]!.n as number

/** Runs `first` in a transaction and starts `second`. Runs `last` once `second` waits for the transaction. */
async function runInBetween<T>(
  first: (tx: Queries) => Promise<unknown>,
  second: () => Promise<T>,
  last: (tx: Queries) => Promise<unknown> = async () => {},
): Promise<T> {
  let begun = (): void => {}
  const hasBegun = new Promise<void>((resolve) => {
    begun = resolve
  })
  const done = db.transaction(async (tx) => {
    await first(tx)
    begun()
    await until('the second one waits', async () => (await countWaiting()) === 1)
    await last(tx)
  })
  await hasBegun
  return (await Promise.all([second(), done]))[0]
}

describe('an organization keeps an owner', () => {
  test('although any statement demotes, removes or moves the last one', async () => {
    const { id, owners, other } = await addOrganization(1)
    const [last] = owners as [number]
    for (const role of ['admin', 'member'] as const)
      await assertFails('org.last_owner', db.one(setMemberRole(id, last, role)))
    await assertFails('org.last_owner', db.run(deleteMember(id, last)))
    const statements = [
      'delete from organization_member where organization_id = $1',
      `update organization_member set role = 'admin' where organization_id = $1`,
      `update organization_member set organization_id = ${(await addOrganization(1)).id} where organization_id = $1 and role = 'owner'`,
      `delete from account where id in (select user_id from organization_member where organization_id = $1)`,
    ]
    for (const statement of statements)
      await assert.rejects(query(statement, [id]), { constraint: 'organization_owner' })
    assert.equal(await countOwners(id), 1)
    await db.one(setMemberRole(id, other, 'owner'))
    await db.run(deleteMember(id, last))
    await assertFails('org.last_owner', db.run(deleteMember(id, other)))
  })

  test('although owners swap in one transaction, the new one first', async () => {
    const { id, owners, other } = await addOrganization(1)
    await db.transaction(async (tx) => {
      await tx.one(setMemberRole(id, other, 'owner'))
      await tx.one(setMemberRole(id, owners[0]!, 'admin'))
    })
    assert.deepEqual((await db.one(findMember(id, other))).role, 'owner')
  })

  test('until it is deleted with its members, also while one of them leaves', async () => {
    for (let round = 0; round < countRounds(10); round++) {
      const { id, owners } = await addOrganization(1)
      const [gone, left] = await Promise.allSettled([
        db.one(markOrganizationDeleted(id)),
        db.run(deleteMember(id, owners[0]!)),
      ])
      // A deadlock may end one of the two calls; then the other one has succeeded.
      if (gone.status === 'rejected') await db.one(markOrganizationDeleted(id))
      assert.ok(left.status === 'fulfilled' || left.reason instanceof Failure)
      await runPurge(db)
      assert.equal(await countOwners(id), 0)
    }
  })

  test('although two owners step down concurrently: the second waits, and stays', async () => {
    for (const step of [deleteMember, (id: number, user: number) => setMemberRole(id, user, 'member')]) {
      const { id, owners } = await addOrganization(2)
      const [a, b] = owners as [number, number]
      await runInBetween(
        (tx) => tx.run(step(id, a)),
        () => assertFails('org.last_owner', db.run(step(id, b))),
      )
      assert.equal(await countOwners(id), 1)
    }
  })

  test('although all owners leave concurrently', async () => {
    for (let round = 0; round < 5; round++) {
      const { id, owners } = await addOrganization(7)
      const done = await Promise.allSettled(owners.map((user) => db.run(deleteMember(id, user))))
      assert.equal(done.filter(({ status }) => status === 'fulfilled').length, 6)
      assert.equal(await countOwners(id), 1)
    }
  })
})

test("a lock returns the caller's role at that time", async () => {
  const { id, owners, other } = await addOrganization(1)
  assert.equal(await db.maybeOne(lockOrganization(999_999, other)), null)
  assert.deepEqual(await db.one(lockOrganization(id, null)), { role: null })
  assert.deepEqual(await db.one(lockOrganization(id, owners[0]!)), { role: 'owner' })
  const role = await runInBetween(
    (tx) => tx.one(lockOrganization(id, owners[0]!)),
    () => db.one(lockOrganization(id, other)),
    (tx) => tx.one(setMemberRole(id, other, 'admin')),
  )
  assert.deepEqual(role, { role: 'admin' })
})
