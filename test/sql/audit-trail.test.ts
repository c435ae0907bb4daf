import assert from 'node:assert/strict'
import { test } from 'node:test'
import { activateAccount, insertAccount, setRole } from '../../sql/accounts/accounts.ts'
import { deactivateAccount, deleteAccount } from '../../sql/accounts/deletions.ts'
import { type AuditEvent, appendAudit } from '../../sql/audit/audit.ts'
import type { Query } from '../../sql/db.ts'
import { Failure } from '../../sql/errors.ts'
import { createTestDatabase } from '../database.ts'
import { countRounds, scaleTimeout } from '../runs.ts'

const { db, query } = await createTestDatabase()
const createEvent = (more: Partial<AuditEvent> = {}): AuditEvent => ({
  kind: 'account.updated',
  actorId: 1,
  accountId: 2,
  address: '192.0.2.1',
  requestId: 'r-1',
  ...more,
})
const readTrail = () => query('select * from audit_event order by id')

test('keeps events in order, with all their fields', async () => {
  await db.run(
    appendAudit([
      createEvent({ data: { text: `quote " ' \\ line\nbreak é`, n: 1 } }),
      createEvent({ kind: 'member.added', organizationId: 7, actorId: null, address: null, requestId: null }),
    ]),
  )
  const rows = (await readTrail()).map(({ id: _, at, ...row }) => ({ ...row, at: at instanceof Date }))
  assert.deepEqual(rows, [
    {
      kind: 'account.updated',
      actor_id: 1,
      account_id: 2,
      organization_id: null,
      address: '192.0.2.1',
      request_id: 'r-1',
      data: { text: `quote " ' \\ line\nbreak é`, n: 1 },
      at: true,
    },
    {
      kind: 'member.added',
      actor_id: null,
      account_id: 2,
      organization_id: 7,
      address: null,
      request_id: null,
      data: {},
      at: true,
    },
  ])
})

test('rejects every statement that would change, delete or truncate events', async () => {
  await db.run(appendAudit([createEvent()]))
  const before = await readTrail()
  const attempts = [
    `update audit_event set kind = 'account.deleted'`,
    'update audit_event set at = now() where false',
    'delete from audit_event',
    'delete from audit_event where false',
    'truncate audit_event',
    'truncate audit_event, account cascade',
    `insert into audit_event (id, kind) overriding system value select id, kind from audit_event
      on conflict on constraint audit_event_pkey do update set kind = 'account.deleted'`,
    `merge into audit_event a using (select 1) b on true when matched then delete`,
    'with gone as (delete from audit_event returning 1) select * from gone',
  ]
  for (const attempt of attempts)
    await assert.rejects(
      query(attempt),
      { code: '42501', message: 'The audit trail is append-only' },
      attempt,
    )
  assert.deepEqual(await readTrail(), before)
})

test('drops an event when its transaction is rolled back', async () => {
  const before = await readTrail()
  await assert.rejects(
    db.transaction(async (tx) => {
      await tx.run(appendAudit([createEvent()]))
      throw new Error('no')
    }),
  )
  assert.deepEqual(await readTrail(), before)
})

test('keeps an event after its account is deleted', async () => {
  const { id } = await db.one(
    insertAccount({
      email: 'short@example.com',
      passwordHash: 'x',
      fullName: null,
      role: 'user',
      isActive: true,
    }),
  )
  await db.run(appendAudit([createEvent({ accountId: id, actorId: id })]))
  await db.maybeOne(deleteAccount(id))
  const rows = await query('select actor_id from audit_event where account_id = $1', [id])
  assert.deepEqual(rows, [{ actor_id: id }])
})

let made = 0
const addAdmin = async (): Promise<number> => {
  const email = `admin${++made}@example.com`
  const fields = { email, passwordHash: 'x', fullName: null, role: 'admin', isActive: true } as const
  return (await db.one(insertAccount(fields))).id
}
const isLastAdminError = (error: unknown): boolean =>
  error instanceof Failure && error.code === 'account.last_admin'
const countAdmins = async (): Promise<number> =>
  (await query(`select count(*)::int as n from account where role = 'admin' and is_active`))[0]!.n as number

const ADMIN_REMOVALS: Record<string, (id: number) => Query<unknown>> = {
  demoted: (id: number) => setRole(id, 'user'),
  deactivated: (id: number) => deactivateAccount(id),
  deleted: (id: number) => deleteAccount(id),
}

test('the last active admin can be changed, but not demoted, deactivated or deleted', async () => {
  await query('delete from account')
  const last = await addAdmin()
  for (const way of Object.values(ADMIN_REMOVALS)) await assert.rejects(db.run(way(last)), isLastAdminError)
  await db.one(setRole(last, 'admin'))
  await db.one(activateAccount(last))
  const inactive = await addAdmin()
  await db.one(deactivateAccount(inactive))
  for (const way of Object.values(ADMIN_REMOVALS))
    await assert.rejects(db.run(way(last)), isLastAdminError, 'an admin who is not active does not count')
  await db.one(setRole(inactive, 'user'))
  const other = await addAdmin()
  await db.one(setRole(last, 'user'))
  for (const way of Object.values(ADMIN_REMOVALS)) await assert.rejects(db.run(way(other)), isLastAdminError)
  assert.equal(await countAdmins(), 1)
})

test('one admin remains when all are removed concurrently', { timeout: scaleTimeout(60_000) }, async () => {
  const ways = Object.values(ADMIN_REMOVALS)
  for (let round = 0; round < countRounds(25); round++) {
    await query(`delete from account where role <> 'admin' or not is_active`)
    const all = await Promise.all(Array.from({ length: 6 }, addAdmin))
    const [kept] = await query(`select array_agg(id) as ids from account where role = 'admin' and is_active`)
    const ids = kept!.ids as number[]
    const ends = await Promise.allSettled(
      ids.map((id, i) => db.transaction(async (tx) => tx.run(ways[(i + round) % 3]!(id)))),
    )
    const failed = ends.filter((end) => end.status === 'rejected')
    assert.equal(failed.length, 1, `of ${all.length} and more one is refused`)
    assert.ok(isLastAdminError(failed[0]!.reason))
    assert.equal(await countAdmins(), 1)
  }
})
