import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { Failure } from '../../sql/errors.ts'
import { insertMember, insertOrganization, updateOrganization } from '../../sql/orgs/orgs.ts'
import { newAccount, sharedDatabase } from './shared-database.ts'

const { db, query } = await sharedDatabase()

type Row = Readonly<Record<string, unknown>>
let count = 0

async function insert(table: string, row: Row): Promise<number> {
  const keys = Object.keys(row)
  const text = `insert into ${table} (${keys.join(', ')}) values (${keys.map((_, i) => `$${i + 1}`).join(', ')}) returning id`
  return (await query(text, Object.values(row)))[0]!.id as number
}
const addAccount = () => newAccount({ query })
const createOrganizationRow = (fields: Row = {}): Row => ({ name: 'N', slug: `s-${randomUUID()}`, ...fields })
const owner = await addAccount()
const org = await insert('organization', createOrganizationRow())
const createMemberRow = (fields: Row = {}): Row => ({
  organization_id: org,
  user_id: owner,
  role: 'member',
  ...fields,
})
const createInviteRow = (fields: Row = {}): Row => ({
  organization_id: org,
  email: `i${++count}@example.com`,
  role: 'member',
  expires_at: new Date(),
  ...fields,
})

const triedConstraints = new Set<string>()
async function assertBroken(constraint: string, action: Promise<unknown>): Promise<void> {
  await assert.rejects(action, { constraint })
  triedConstraints.add(constraint)
}
const assertFails = (code: string, action: Promise<unknown>) =>
  assert.rejects(action, (error) => error instanceof Failure && error.code === code)

const violations: Readonly<Record<string, readonly [constraint: string, ...Row[]][]>> = {
  organization: [
    [
      'organization_name_check',
      createOrganizationRow({ name: '' }),
      createOrganizationRow({ name: 'n'.repeat(201) }),
    ],
    [
      'organization_slug_check',
      ...['', '-', '-a', 'a-', 'A', 'a_b', 'ä', 'a\n', '\na', 'a'.repeat(64)].map((slug) =>
        createOrganizationRow({ slug }),
      ),
    ],
    [
      'organization_description_check',
      createOrganizationRow({ description: '' }),
      createOrganizationRow({ description: 'd'.repeat(2001) }),
    ],
    ['organization_created_by_fkey', createOrganizationRow({ created_by: 999_999 })],
    [
      'organization_deleted_check',
      createOrganizationRow({ slug: null }),
      createOrganizationRow({ deleted_at: new Date() }),
    ],
  ],
  organization_member: [
    ['organization_member_role_check', createMemberRow({ role: 'root' })],
    ['organization_member_organization_id_fkey', createMemberRow({ organization_id: 999_999 })],
    ['organization_member_user_id_fkey', createMemberRow({ user_id: 999_999 })],
  ],
  organization_invite: [
    ['organization_invite_role_check', createInviteRow({ role: 'root' })],
    ['organization_invite_status_check', createInviteRow({ status: 'lost' })],
    [
      'organization_invite_email_check',
      createInviteRow({ email: 'Upper@example.com' }),
      createInviteRow({ email: 'a@' }),
      createInviteRow({ email: `${'a'.repeat(320)}@` }),
    ],
    [
      'organization_invite_accepted_at_check',
      createInviteRow({ status: 'accepted' }),
      createInviteRow({ accepted_at: new Date() }),
      createInviteRow({ status: 'revoked', accepted_at: new Date() }),
    ],
    ['organization_invite_organization_id_fkey', createInviteRow({ organization_id: 999_999 })],
    ['organization_invite_invited_by_fkey', createInviteRow({ invited_by: 999_999 })],
  ],
}

describe('constraints of organizations', () => {
  test('accept valid rows', async () => {
    for (const slug of ['a', '0-0', 'z'.repeat(63)])
      await insert('organization', createOrganizationRow({ slug }))
    await insert('organization', createOrganizationRow({ slug: null, deleted_at: new Date() }))
    for (const role of ['owner', 'admin', 'member'])
      await insert('organization_member', createMemberRow({ role, user_id: await addAccount() }))
    await insert('organization_invite', createInviteRow({ invited_by: owner }))
    await insert('organization_invite', createInviteRow({ status: 'accepted', accepted_at: new Date() }))
  })

  for (const [table, cases] of Object.entries(violations)) {
    for (const [constraint, ...rows] of cases) {
      test(constraint, async () => {
        for (const row of rows) await assertBroken(constraint, insert(table, row))
      })
    }
  }

  test('reject duplicates', async () => {
    const assertUnique = async (constraint: string, table: string, row: Row): Promise<void> => {
      await insert(table, row)
      await assertBroken(constraint, insert(table, row))
    }
    await assertUnique('organization_slug_key', 'organization', createOrganizationRow())
    await assertUnique(
      'organization_member_organization_id_user_id_key',
      'organization_member',
      createMemberRow({ user_id: await addAccount() }),
    )
    const pending = createInviteRow()
    const over = [
      { status: 'revoked' },
      { status: 'expired' },
      { status: 'accepted', accepted_at: new Date() },
    ]
    for (const fields of [...over, ...over]) await insert('organization_invite', { ...pending, ...fields })
    await assertUnique('organization_invite_pending_key', 'organization_invite', pending)
    const again = await insert('organization_invite', { ...pending, status: 'revoked' })
    await assertBroken(
      'organization_invite_pending_key',
      query(`update organization_invite set status = 'pending' where id = $1`, [again]),
    )
    for (const table of Object.keys(violations)) {
      const copy = `insert into ${table} overriding system value select * from ${table} limit 1`
      await assertBroken(`${table}_pkey`, query(copy))
    }
  })

  test('are all covered', async () => {
    const names = await query(
      `select conname as name from pg_constraint where conrelid = any($1::regclass[]) and contype <> 'n'
       union select indexrelid::regclass::text from pg_index where indisunique and indrelid = any($1::regclass[])`,
      [Object.keys(violations)],
    )
    assert.deepEqual(
      names.map((row) => String(row.name)).filter((name) => !triedConstraints.has(name)),
      [],
    )
  })

  test('errors for clients', async () => {
    const made = (slug: string) =>
      insertOrganization({ name: 'N', slug, description: null, isActive: true, ownerId: null })
    await db.one(made('told'))
    await assertFails('org.slug_taken', db.one(made('told')))
    await assertFails('org.slug_invalid', db.one(made('Told')))
    const user = await addAccount()
    await db.one(insertMember(org, user, 'member'))
    await assertFails('member.exists', db.one(insertMember(org, user, 'member')))
    await assertFails('account.missing', db.one(insertMember(org, 999_999, 'member')))
  })

  test('an update changes only the given fields', async () => {
    const { id } = await db.one(
      insertOrganization({ name: 'N', slug: 'kept', description: 'D', isActive: true, ownerId: null }),
    )
    const change = async (fields: Parameters<typeof updateOrganization>[1]) => {
      const { name, description } = JSON.parse((await db.one(updateOrganization(id, fields))).json)
      return [name, description]
    }
    assert.deepEqual(await change({ name: 'M' }), ['M', 'D'])
    assert.deepEqual(await change({ description: 'E' }), ['M', 'E'])
    assert.deepEqual(await change({ description: null }), ['M', null])
    assert.equal(await db.maybeOne(updateOrganization(999_999, { name: 'M' })), null)
  })
})
