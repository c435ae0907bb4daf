import { z } from 'zod'
import {
  activateAccount,
  endSessions,
  notifyAccountChanged,
  readAccount,
  setRole,
  updateAccount,
} from '../../../sql/accounts/accounts.ts'
import { deactivateAccount } from '../../../sql/accounts/deletions.ts'
import { ACCOUNT_ORDERS, ROLES, readAccounts } from '../../../sql/accounts/lists.ts'
import { AUDIT_KINDS, AUDIT_ORDERS, appendAudit, readAudit } from '../../../sql/audit/audit.ts'
import type { Queries, Query } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { findCustomerByAccount } from '../../../sql/payments/changes.ts'
import { deleteDueAccount } from '../../../tasks/accounts/delete.task.ts'
import { deleteAndPurge } from '../../../tasks/accounts/deletion.ts'
import { createInheritanceEvents } from '../../../tasks/accounts/inheritance.ts'
import { enqueueAddressUpdate } from '../../../tasks/payments/address.task.ts'
import { normalizeDomainInSearch } from '../../../tasks/platform/email-address.ts'
import { enqueue } from '../../../tasks/task.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import {
  answerArray,
  buildPageQueryFields,
  buildPageValues,
  buildSortSchema,
  buildTimeRangeFields,
  buildTimeRangeRule,
  PageFields,
} from '../../pipeline/request/lists.ts'
import { flag, RowId, Timestamp } from '../../pipeline/request/schemas.ts'
import { type Answer, answerJson, type Input, route, type Writes } from '../../pipeline/route.ts'
import { appendAuditEvent, buildAuditEvent } from '../../pipeline/write/audit.ts'
import { requireSameOrganization } from '../orgs/access.ts'
import { User } from './shapes.ts'

const NEWEST_FIRST = { column: 'created_at', direction: 'desc' } as const
const LATEST_FIRST = { column: 'at', direction: 'desc' } as const

// The trigram index cannot find shorter texts, so searching for them would scan every account.
const Search = z
  .string()
  .trim()
  .min(3)
  .max(200)
  .regex(/[\p{L}\p{N}]{2}/u, 'must have two letters or digits in a row')

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
    ...PageFields,
  })
  .meta({ id: 'AuditPage' })

/** Routes that administer accounts and read the audit log. */
export const userRoutes = [
  route({
    method: 'get',
    path: '/users',
    summary: 'List accounts',
    description: `Newest first, unless \`sort\` is given. \`search\` matches part of the email address or full name, \
ignoring case and accents. An internationalized domain is found by whole labels. By \`last_login\`, accounts that have never signed in count as the longest absent.`,
    auth: 'moderator',
    query: z
      .object({
        ...buildPageQueryFields(Object.values(ACCOUNT_ORDERS), { max: 1000, fallback: 1000 }),
        search: Search.optional(),
        role: z.enum(ROLES).optional(),
        is_active: flag().optional(),
        ...buildTimeRangeFields('Registered'),
        sort: buildSortSchema(ACCOUNT_ORDERS),
      })
      .refine(...buildTimeRangeRule('created_at')),
    response: z.array(User),
    reads: 'list',
    mayLag: true,
    handle: async ({ query, reader, request }) => {
      const {
        role = null,
        is_active = null,
        search = null,
        from = null,
        to = null,
        sort = NEWEST_FIRST,
      } = query
      const page = buildPageValues(query, ACCOUNT_ORDERS[sort.column])
      const asciiSearch = search && normalizeDomainInSearch(search)
      const values = [role, is_active, search, asciiSearch, from, to, ...page] as const
      return answerArray((await reader.text(readAccounts[sort.column][sort.direction], values))!, request)
    },
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
      return answerJson(text)
    },
  }),

  route({
    method: 'patch',
    path: '/users/:user_id',
    summary: 'Change the full name of an account',
    description: 'An empty name clears it. Only the account itself and admins may do this.',
    params: UserParams,
    query: z.object({ full_name: z.string().trim().max(200).optional() }),
    response: User,
    errors: ['account.no_fields', 'auth.not_yours', 'account.missing'],
    handle: (input) => {
      const { params, query, caller } = input
      if (caller.role !== 'admin' && caller.id !== params.user_id) throw fail('auth.not_yours')
      if (query.full_name === undefined) throw fail('account.no_fields')
      return changeAccount(input, 'account.updated', updateAccount(params.user_id, query.full_name || null))
    },
  }),

  route({
    method: 'patch',
    path: '/users/:user_id/deactivate',
    summary: 'Deactivate an account',
    description: `All its sessions end immediately, and the pending invites that it sent are revoked. It keeps its \
memberships. Where it is the only active owner of an organization, the highest-ranked, longest-standing other active member \
becomes an owner, too.`,
    auth: 'admin',
    params: UserParams,
    response: User,
    errors: ['account.missing', 'account.last_admin'],
    handle: deactivate,
  }),

  route({
    method: 'patch',
    path: '/users/:user_id/activate',
    summary: 'Activate an account',
    description: 'Also cancels a deletion that is due but not done yet.',
    auth: 'admin',
    params: UserParams,
    response: User,
    errors: ['account.missing'],
    handle: activate,
  }),

  route({
    method: 'patch',
    path: '/users/:user_id/role',
    summary: 'Change the role of an account',
    description: 'Takes the role from the body or, without one, from the query.',
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
      return changeAccount(input, 'account.role_changed', setRole(input.params.user_id, role), (row) => ({
        from: row.former_role,
        to: role,
      }))
    },
  }),

  route({
    method: 'delete',
    path: '/users/:user_id',
    summary: 'Delete an account permanently',
    description:
      'The account and its memberships are gone immediately; a job then deletes its documents and other data. A customer of the payment provider is deactivated immediately, and deleted once nothing is open or running there. An organization without another active owner passes to its highest-ranked, longest-standing active member. Without other members it is deleted; if all of them are deactivated, it has no owner until an admin of the service appoints one.',
    auth: 'admin',
    params: UserParams,
    errors: ['account.missing', 'account.last_admin'],
    handle: async (input) => {
      const { params, edge, requestId } = input
      const id = params.user_id
      const options = { requestId, settings: edge.settings }
      const event = (email: string) =>
        buildAuditEvent(input, 'account.deleted', { accountId: id, data: { email } })
      return input.transaction(async (tx) => {
        if ((await tx.maybeOne(findCustomerByAccount(id))) !== null) await scheduleDeletion(tx, input)
        else if (!(await deleteAndPurge(tx, id, event, options))) throw fail('account.missing')
        tx.afterCommit(() => edge.authenticator.forget(id))
        return undefined
      })
    },
  }),

  route({
    method: 'get',
    path: '/audit',
    summary: 'List audit events of accounts, organizations and payments',
    description:
      'Newest first, unless `sort` is given. An API key of an organization sees only the events of that organization.',
    auth: 'admin',
    allowsOrganizationKeys: true,
    query: z.object({
      ...buildPageQueryFields(AUDIT_ORDERS.at, { max: 200, fallback: 50 }),
      kind: z.enum(AUDIT_KINDS).optional(),
      account_id: RowId.optional(),
      organization_id: RowId.optional(),
      ...buildTimeRangeFields('Happened'),
      sort: buildSortSchema(AUDIT_ORDERS),
    }),
    response: AuditPage,
    reads: 'list',
    handle: async ({ query, caller, reader }) => {
      const {
        kind = null,
        account_id = null,
        organization_id = caller.key?.organizationId ?? null,
        from = null,
        to = null,
        sort = LATEST_FIRST,
      } = query
      if (organization_id !== null) requireSameOrganization(caller, organization_id)
      const values = [kind, account_id, organization_id, from, to, ...buildPageValues(query)] as const
      return answerJson((await reader.text(readAudit[sort.column][sort.direction], values))!)
    },
  }),
]

type UserJson = z.input<typeof User>
type UserRequest = Input<z.output<typeof UserParams>, unknown, unknown, Caller>
type UserInput = UserRequest & Writes<UserJson>

/** Deactivates an account, and enqueues the job that ends its subscriptions and then deletes it. */
async function scheduleDeletion(tx: Queries, input: UserRequest): Promise<void> {
  const { params, edge, requestId } = input
  const id = params.user_id
  await deactivateAndAudit(tx, input, 'account.deletion_requested')
  const options = { ownerId: null, requestId, settings: edge.settings }
  await enqueue(tx, deleteDueAccount, { account_id: id }, options)
  await tx.run(notifyAccountChanged(id))
}

/** Deactivates an account, ends its sessions, and returns it as JSON. @throws account.missing */
async function deactivateAndAudit(
  tx: Queries,
  input: UserRequest,
  kind: 'account.deactivated' | 'account.deletion_requested',
): Promise<string> {
  const id = input.params.user_id
  const changed = await tx.maybeOne(deactivateAccount(id, kind === 'account.deletion_requested'))
  if (changed === null) throw fail('account.missing')
  await tx.run(endSessions(id, null))
  const event = buildAuditEvent(input, kind, { accountId: id })
  await tx.run(appendAudit([event, ...createInheritanceEvents(id, changed, event)]))
  return changed.json
}

function deactivate(input: UserInput): Promise<Answer<UserJson>> {
  return input.transaction(async (tx) => {
    const text = await deactivateAndAudit(tx, input, 'account.deactivated')
    await input.edge.authenticator.invalidate(tx, input.params.user_id)
    return answerJson(text)
  })
}

function activate(input: UserInput): Promise<Answer<UserJson>> {
  const accountId = input.params.user_id
  return input.transaction(async (tx) => {
    const changed = await tx.maybeOne(activateAccount(accountId))
    if (changed === null) throw fail('account.missing')
    await tx.run(appendAuditEvent(input, 'account.activated', { accountId }))
    if (changed.restored) await tx.run(appendAuditEvent(input, 'account.deletion_cancelled', { accountId }))
    await input.edge.authenticator.invalidate(tx, accountId)
    return answerJson(changed.json)
  })
}

/** Changes an account and returns it. Makes every edge process drop its cached state of the account. */
async function changeAccount<T extends { readonly json: string }>(
  input: UserInput,
  kind: 'account.updated' | 'account.role_changed',
  change: Query<T>,
  describe: (row: T) => Readonly<Record<string, unknown>> = () => ({}),
): Promise<Answer<UserJson>> {
  const { params, edge, requestId } = input
  const id = params.user_id
  return input.transaction(async (tx) => {
    const row = await tx.maybeOne(change)
    if (row === null) throw fail('account.missing')
    await tx.run(appendAuditEvent(input, kind, { accountId: id, data: describe(row) }))
    // The name may have changed.
    if (kind === 'account.updated') await enqueueAddressUpdate(tx, id, { requestId, settings: edge.settings })
    await edge.authenticator.invalidate(tx, id)
    return answerJson(row.json)
  })
}
