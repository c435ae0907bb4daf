import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { deleteAccount } from '../../sql/accounts/deletions.ts'
import { markOrganizationDeleted, type OrgRole } from '../../sql/orgs/orgs.ts'
import { createTestDatabase } from '../database.ts'
import { runPurge } from '../purge.ts'
import { countRounds } from '../runs.ts'
import { newAccount } from './shared-database.ts'

/** When accounts are deleted, their organizations get an heir or are deleted. */

const { db, query } = await createTestDatabase()
const addAccount = () => newAccount({ query })

/** Adds an organization. Its members joined in the given order, a day apart, the last one now. */
async function addOrganization(...members: readonly [user: number, role: OrgRole][]): Promise<number> {
  const [row] = await query(`insert into organization (name, slug) values ('N', $1) returning id`, [
    `s-${randomUUID()}`,
  ])
  for (const [i, [user, role]] of members.entries())
    await query(
      `insert into organization_member (organization_id, user_id, role, joined_at) values ($1, $2, $3, now() - make_interval(days => $4))`,
      [row!.id, user, role, members.length - i],
    )
  return row!.id as number
}
const readRoles = async (id: number) =>
  Object.fromEntries(
    (await query('select user_id, role from organization_member where organization_id = $1', [id])).map(
      (row) => [row.user_id, row.role],
    ),
  )
const organizationExists = async (id: number): Promise<boolean> =>
  (await query('select 1 from organization where id = $1 and deleted_at is null', [id])).length === 1

describe('account_delete', () => {
  test('passes the organization to the highest-ranked, longest-standing other member', async () => {
    const [gone, late, early, member] = await Promise.all([
      addAccount(),
      addAccount(),
      addAccount(),
      addAccount(),
    ])
    const id = await addOrganization([member, 'member'], [gone, 'owner'], [early, 'admin'], [late, 'admin'])
    const plain = await addOrganization([gone, 'owner'], [late, 'member'], [early, 'member'])
    const { inherited, deleted } = await db.one(deleteAccount(gone))
    assert.deepEqual(inherited, [
      { organization_id: id, heir_id: early },
      { organization_id: plain, heir_id: late },
    ])
    assert.deepEqual(deleted, [])
    assert.deepEqual(await readRoles(id), { [early]: 'owner', [late]: 'admin', [member]: 'member' })
    assert.deepEqual(await readRoles(plain), { [late]: 'owner', [early]: 'member' })
  })

  test('does not look for heirs in a deleted organization', async () => {
    const [gone, member] = await Promise.all([addAccount(), addAccount()])
    const id = await addOrganization([gone, 'owner'], [member, 'member'])
    await db.one(markOrganizationDeleted(id))
    const { inherited, deleted } = await db.one(deleteAccount(gone))
    assert.deepEqual([inherited, deleted], [[], []])
    assert.deepEqual(await readRoles(id), { [member]: 'member' })
  })

  test('chooses the first row among members who joined at the same time', async () => {
    const [gone, one, two] = await Promise.all([addAccount(), addAccount(), addAccount()])
    const id = await addOrganization([gone, 'owner'], [two, 'admin'], [one, 'admin'])
    await query('update organization_member set joined_at = now() where organization_id = $1', [id])
    assert.equal((await db.one(deleteAccount(gone))).inherited[0]!.heir_id, two)
  })

  test('deletes an organization without another member, with its invites', async () => {
    const gone = await addAccount()
    const id = await addOrganization([gone, 'owner'])
    await query(
      `insert into organization_invite (organization_id, email, role, expires_at) values ($1, 'i@example.com', 'member', now())`,
      [id],
    )
    const { email, inherited, deleted } = await db.one(deleteAccount(gone))
    assert.match(email, /^[\w-]+@example\.com$/)
    assert.deepEqual([inherited, deleted.map((row) => row.organization_id)], [[], [id]])
    assert.equal(await organizationExists(id), false)
    await runPurge(db)
    assert.deepEqual(await query('select 1 from organization where id = $1', [id]), [])
    assert.deepEqual(await query('select 1 from organization_invite where organization_id = $1', [id]), [])
  })

  test('leaves organizations that others own too, or that the account does not own', async () => {
    const [gone, other] = await Promise.all([addAccount(), addAccount()])
    const shared = await addOrganization([gone, 'owner'], [other, 'owner'])
    const foreign = await addOrganization([other, 'owner'], [gone, 'admin'])
    const nobodys = await addOrganization([gone, 'member'], [other, 'member'])
    const { inherited, deleted } = await db.one(deleteAccount(gone))
    assert.deepEqual([inherited, deleted], [[], []])
    assert.deepEqual(await readRoles(shared), { [other]: 'owner' })
    assert.deepEqual(await readRoles(foreign), { [other]: 'owner' })
    assert.deepEqual(await readRoles(nobodys), { [other]: 'member' })
  })

  test('keeps sent invites, without their sender', async () => {
    const [gone, other] = await Promise.all([addAccount(), addAccount()])
    const id = await addOrganization([other, 'owner'], [gone, 'admin'])
    await query(
      `insert into organization_invite (organization_id, email, role, invited_by, expires_at) values ($1, 'i@example.com', 'member', $2, now())`,
      [id, gone],
    )
    await db.one(deleteAccount(gone))
    await runPurge(db)
    const rows = await query('select invited_by from organization_invite where organization_id = $1', [id])
    assert.deepEqual(rows, [{ invited_by: null }])
  })

  test('deletes no account twice', async () => {
    const gone = await addAccount()
    const answers = await Promise.all([1, 2, 3].map(() => db.maybeOne(deleteAccount(gone))))
    assert.equal(answers.filter((answer) => answer !== null).length, 1)
    assert.equal(await db.maybeOne(deleteAccount(999_999)), null)
  })

  test('deletes all members of several organizations concurrently, passing each on until the last', async () => {
    for (let round = 0; round < countRounds(8); round++) {
      const users = await Promise.all(Array.from({ length: 6 }, addAccount))
      const orgs = await Promise.all(
        [0, 1, 2, 3].map((shift) =>
          addOrganization(
            ...users.map((_, i): [number, OrgRole] => [
              users[(i + shift) % 6]!,
              (['owner', 'admin'] as const)[i] ?? 'member',
            ]),
          ),
        ),
      )
      const kept = users[round % 6]!
      const answers = await Promise.all(
        users
          .filter((user) => user !== kept)
          .map((user) => db.transaction((tx) => tx.one(deleteAccount(user)))),
      )
      assert.equal(answers.flatMap(({ deleted }) => deleted).length, 0)
      for (const id of orgs) assert.deepEqual(await readRoles(id), { [kept]: 'owner' })
      assert.equal((await db.one(deleteAccount(kept))).deleted.length, 4)
    }
  })
})
