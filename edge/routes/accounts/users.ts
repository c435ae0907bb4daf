import { z } from 'zod'
import {
  ACCOUNT_ORDER,
  accountChanged,
  deleteAccount,
  endSessions,
  readAccount,
  readAccounts,
  setActive,
  setRole,
  updateAccount,
} from '../../../sql/accounts.ts'
import { AUDIT_KINDS, AUDIT_ORDER, appendAudit, readAudit } from '../../../sql/audit.ts'
import { fail } from '../../../sql/errors.ts'
import { inheritanceEvents } from '../../../tasks/accounts/inheritance.ts'
import { purgeAccounts } from '../../../tasks/accounts/purge.ts'
import { enqueue } from '../../../tasks/task.ts'
import { audit, eventOf } from '../../pipeline/audit.ts'
import type { Caller } from '../../pipeline/auth.ts'
import { array, numbered, Paged, pageValues } from '../../pipeline/lists.ts'
import { type Answer, type Input, json, route, type Writes } from '../../pipeline/route.ts'
import { RowId, Timestamp } from '../../pipeline/schemas.ts'
import { ROLES, User } from './shapes.ts'

const UserParams = z.object({ user_id: RowId })

const AuditPage = z
  .strictObject({
    events: z.array(
      z.strictObject({
        id: z.int(),
        at: Timestamp,
        kind: z.enum(AUDIT_KINDS),
        actor_id: z.int().nullable(),
        account_id: z.int().nullable(),
        organization_id: z.int().nullable(),
        address: z.string().nullable(),
        request_id: z.string().nullable(),
        data: z.record(z.string(), z.unknown()),
      }),
    ),
    ...Paged,
  })
  .meta({ id: 'AuditPage' })

/** Reading and administering accounts. */
export const userRoutes = [
  route({
    method: 'get',
    path: '/users',
    summary: 'List accounts, newest first',
    auth: 'moderator',
    query: z.object(numbered(ACCOUNT_ORDER, { most: 1000, fallback: 1000 })),
    response: z.array(User),
    reads: 'list',
    handle: async ({ query, reader, request }) =>
      array((await reader.text(readAccounts, pageValues(query)))!, request),
  }),

  route({
    method: 'get',
    path: '/users/:user_id',
    summary: 'Get an account',
    params: UserParams,
    response: User,
    errors: ['account.missing'],
    handle: async ({ params, edge }) => {
      const text = await edge.reader.text(readAccount, [params.user_id])
      if (text === null) throw fail('account.missing')
      return json(text)
    },
  }),

  route({
    method: 'patch',
    path: '/users/:user_id',
    summary: 'Change the full name of an account; an empty one clears it',
    params: UserParams,
    query: z.object({ full_name: z.string().trim().max(200).optional() }),
    response: User,
    errors: ['account.no_fields', 'auth.not_yours', 'account.missing'],
    handle: (input) => {
      const { params, query, caller } = input
      if (caller.role !== 'admin' && caller.id !== params.user_id) throw fail('auth.not_yours')
      if (query.full_name === undefined) throw fail('account.no_fields')
      return changed(input, 'account.updated', updateAccount(params.user_id, query.full_name || null))
    },
  }),

  route({
    method: 'patch',
    path: '/users/:user_id/deactivate',
    summary: 'Deactivate an account and end all of its sessions at once',
    auth: 'admin',
    params: UserParams,
    response: User,
    errors: ['account.missing', 'account.last_admin'],
    handle: (input) => changed(input, 'account.deactivated', setActive(input.params.user_id, false)),
  }),

  route({
    method: 'patch',
    path: '/users/:user_id/activate',
    summary: 'Activate an account',
    auth: 'admin',
    params: UserParams,
    response: User,
    errors: ['account.missing'],
    handle: (input) => changed(input, 'account.activated', setActive(input.params.user_id, true)),
  }),

  route({
    method: 'patch',
    path: '/users/:user_id/role',
    summary: 'Change the role of an account, given in the query or the body',
    auth: 'admin',
    params: UserParams,
    query: z.object({ role: z.enum(ROLES).optional() }),
    body: z
      .strictObject({ role: z.enum(ROLES) })
      .meta({ id: 'RoleChange' })
      .optional(),
    response: User,
    errors: ['account.no_fields', 'account.missing', 'account.last_admin'],
    handle: (input) => {
      const role = input.body?.role ?? input.query.role
      if (role === undefined) throw fail('account.no_fields')
      return changed(input, 'account.role_changed', setRole(input.params.user_id, role), { role })
    },
  }),

  route({
    method: 'delete',
    path: '/users/:user_id',
    summary: 'Delete an account permanently, with its documents and memberships',
    description:
      'It is gone at once; a job then deletes what belongs to it. An organization of which it is the only owner passes to the highest-ranked, longest-standing member, or is deleted if there is none.',
    auth: 'admin',
    params: UserParams,
    errors: ['account.missing', 'account.last_admin'],
    handle: async (input) => {
      const { params, edge, requestId } = input
      const id = params.user_id
      return input.transaction(async (tx) => {
        const gone = await tx.maybeOne(deleteAccount(id))
        if (gone === null) throw fail('account.missing')
        const deleted = eventOf(input, 'account.deleted', { accountId: id, data: { email: gone.email } })
        await tx.run(appendAudit([deleted, ...inheritanceEvents(id, gone, deleted)]))
        // Nobody's: it must not go with an account.
        const options = { ownerId: null, requestId, maxTries: edge.settings.workerMaxTries }
        await enqueue(tx, purgeAccounts, {}, options)
        await tx.run(accountChanged(id))
        tx.afterCommit(() => edge.accounts.forget(id))
        return undefined
      })
    },
  }),

  route({
    method: 'get',
    path: '/audit',
    summary: 'List audit events of accounts and organizations, newest first',
    auth: 'admin',
    query: z.object({
      ...numbered(AUDIT_ORDER, { most: 200, fallback: 50 }),
      kind: z.enum(AUDIT_KINDS).optional(),
      account_id: RowId.optional(),
      organization_id: RowId.optional(),
    }),
    response: AuditPage,
    reads: 'list',
    handle: async ({ query, reader }) => {
      const { kind = null, account_id = null, organization_id = null } = query
      const text = await reader.text(readAudit, [kind, account_id, organization_id, ...pageValues(query)])
      return json(text!)
    },
  }),
]

type Changed = z.input<typeof User>
type OfUser = Input<z.output<typeof UserParams>, unknown, unknown, Caller> & Writes<Changed>

/** Changes an account and returns it; every edge process drops what it has cached of it. */
async function changed(
  input: OfUser,
  kind: 'account.updated' | 'account.deactivated' | 'account.activated' | 'account.role_changed',
  change: ReturnType<typeof updateAccount>,
  data: Readonly<Record<string, unknown>> = {},
): Promise<Answer<Changed>> {
  const { params, edge } = input
  const id = params.user_id
  return input.transaction(async (tx) => {
    const row = await tx.maybeOne(change)
    if (row === null) throw fail('account.missing')
    if (kind === 'account.deactivated') await tx.run(endSessions(id, null))
    await tx.run(audit(input, kind, { accountId: id, data }))
    await tx.run(accountChanged(id))
    tx.afterCommit(() => edge.accounts.forget(id))
    return json(row.json)
  })
}
