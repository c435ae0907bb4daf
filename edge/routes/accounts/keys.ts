import { z } from 'zod'
import { type BudgetChanges, setKeyBudget } from '../../../sql/budgets/budgets.ts'
import type { Transaction } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { isUuid, uuidv7 } from '../../../sql/ids.ts'
import {
  API_KEY_ORDER,
  deleteApiKey,
  findOwnedKey,
  insertApiKey,
  readApiKeys,
  readKeyJson,
  readOrganizationKeys,
} from '../../../sql/keys/api-keys.ts'
import { requireQuota } from '../../../sql/quotas/quotas.ts'
import { createApiKey } from '../../../tasks/accounts/api-keys.ts'
import { digestOf } from '../../../tasks/accounts/tokens.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { listScopes } from '../../pipeline/access/scopes.ts'
import { addSealed, revealSealed } from '../../pipeline/answer/sealed-answer.ts'
import { failInvalidField } from '../../pipeline/request/input.ts'
import { answerArray, buildCursorSchema, buildCursorValues } from '../../pipeline/request/lists.ts'
import { count, Moment, RowId, Timestamp } from '../../pipeline/request/schemas.ts'
import { type Answer, answerJson, type Input, route, type Writes } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { buildBudgetSchema } from '../ai/budget-shapes.ts'
import { lockForRole, ROLE_ERRORS, requireAccess } from '../orgs/access.ts'
import { enqueueNotice } from './notices.ts'
import { checkProof, isFailure, lockCaller, PROOF_DESCRIPTION, PROOF_ERRORS, proofFields } from './proof.ts'

// The schema is lazy, because other areas declare their scopes after this module is loaded.
const Scopes = z.lazy(() => {
  const scopes = listScopes()
  return z.array(z.enum(scopes)).min(1).max(scopes.length)
})

const KeyBudget = buildBudgetSchema((amount) => amount.positive())

const NewKey = z
  .strictObject({
    name: z.string().trim().min(1).max(100),
    scopes: Scopes,
    expires_at: Moment.optional(),
    organization_id: z.int().min(1).max(2_147_483_647).optional(),
    budget: KeyBudget.optional(),
    ...proofFields,
  })
  .meta({ id: 'ApiKeyCreate' })

const keyFields = {
  id: z.uuid(),
  account_id: z.int(),
  organization_id: z.int().nullable(),
  name: z.string(),
  hint: z.string().meta({ description: 'The last four characters of the key' }),
  scopes: z.array(z.string()),
  created_at: Timestamp,
  expires_at: Timestamp.nullable(),
  last_used_at: Timestamp.nullable().meta({
    description: 'Lags by up to a minute; null if it was never used',
  }),
  budget: KeyBudget.required().meta({ description: 'Limits of AI usage; null: no limit' }),
}
const ApiKey = z.strictObject(keyFields).meta({ id: 'ApiKey' })
const CreatedKey = z
  .strictObject({ ...keyFields, key: z.string().meta({ description: 'Shown only once' }) })
  .meta({ id: 'ApiKeyCreated' })

/** Routes for API keys, with which programs act on behalf of an account. */
export const keyRoutes = [
  route({
    method: 'post',
    path: '/keys',
    summary: 'Create an API key',
    description: `Only this response shows the key. Send it as \`Authorization: Bearer\`. It acts as the account that \
created it, within its scopes: \`AREA:read\`, or \`AREA:write\`, which includes reading; \`*\` stands for every area. It \
cannot change credentials. A key of an organization is limited to the routes, webhooks and audit trail of that \
organization. Admins and owners of the organization create, list and delete such keys, and a key ends when its account \
leaves. ${PROOF_DESCRIPTION} An email notifies the account. The quota \`keys\` limits their number; expired keys are deleted \
after 30 days.`,
    body: NewKey,
    response: CreatedKey,
    status: 201,
    errors: ['quota.keys', 'key.no_account', ...PROOF_ERRORS, ...ROLE_ERRORS],
    sideEffect: true,
    hasCredentials: true,
    needsSession: true,
    addUnstored: revealSealed,
    handle: createKey,
  }),

  route({
    method: 'get',
    path: '/keys',
    summary: 'List API keys, newest first',
    description:
      'Lists the keys of the caller or, with `organization_id`, those of an organization, for its admins and owners.',
    query: z.object({
      organization_id: RowId.optional(),
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      cursor: buildCursorSchema(API_KEY_ORDER),
    }),
    response: z.array(ApiKey),
    errors: ROLE_ERRORS,
    needsSession: true,
    reads: 'list',
    handle: async ({ query, caller, reader, request }) => {
      const page = [buildCursorValues(query.cursor), 0, query.limit] as const
      const text =
        query.organization_id === undefined
          ? await reader.text(readApiKeys, [caller.ownerId ?? 0, ...page])
          : requireAccess(
              await reader.text(readOrganizationKeys, [query.organization_id, caller.ownerId, ...page]),
            )
      return answerArray(text!, request)
    },
  }),

  route({
    method: 'patch',
    path: '/keys/:key_id',
    summary: 'Change the budget of an API key',
    description: `The budget limits the AI usage of the key by UTC day and month, in tokens and US dollars. Null removes a \
limit; omitted kinds do not change. For those who may delete the key.`,
    params: z.object({ key_id: z.string() }),
    body: z.strictObject({ budget: KeyBudget }).meta({ id: 'ApiKeyChanges' }),
    response: ApiKey,
    errors: ['key.missing', ...ROLE_ERRORS],
    needsSession: true,
    handle: changeKey,
  }),

  route({
    method: 'delete',
    path: '/keys/:key_id',
    summary: 'Delete an API key',
    description:
      'The key ends immediately. For the account that created it, admins and owners of its organization, and admins of the service.',
    params: z.object({ key_id: z.string() }),
    errors: ['key.missing', ...ROLE_ERRORS],
    needsSession: true,
    handle: deleteKey,
  }),
]

type CreateInput = Input<undefined, undefined, z.output<typeof NewKey>, Caller> &
  Writes<z.input<typeof CreatedKey>>

async function createKey(input: CreateInput): Promise<Answer<z.input<typeof CreatedKey>>> {
  const { body, caller, edge } = input
  const { organization_id: organizationId = null, expires_at: expiresAt = null, budget, ...proofInput } = body
  const { ownerId } = caller
  if (ownerId === null) throw fail('key.no_account')
  if (expiresAt !== null && Date.parse(expiresAt) <= edge.healthCheck.now())
    throw failInvalidField('body', 'expires_at', 'must be in the future', 'too_small')
  const proof = await checkProof(input, proofInput)
  return input.transaction(async (tx) => {
    if (organizationId !== null)
      await lockForRole(tx, { params: { org_id: organizationId }, caller }, 'admin')
    const identity = await proof.confirm(tx)
    if (isFailure(identity)) return identity
    await lockCaller(tx, caller)
    const id = uuidv7()
    const key = createApiKey()
    const scopes = [...new Set(body.scopes)].sort()
    await tx.run(
      insertApiKey({
        id,
        accountId: ownerId,
        organizationId,
        name: body.name,
        scopes,
        expiresAt,
        digest: digestOf(key),
        hint: key.slice(-4),
      }),
    )
    await requireQuota(tx, ownerId, ['keys'], edge.settings.quotas)
    if (budget !== undefined) await tx.run(setKeyBudget(id, budget))
    const data = { key: id, name: body.name, scopes, expires_at: expiresAt, ...(budget && { budget }) }
    await enqueueNotice(tx, input, ownerId, 'key_created', body.name)
    await tx.run(appendAuditEvent(input, 'key.created', { accountId: ownerId, organizationId, data }))
    return answerJson(addSealed(edge, (await tx.one(readKeyJson(id))).json, { key }))
  })
}

type KeyInput<B> = Input<{ key_id: string }, undefined, B, Caller>

/** Finds a key that the caller may change. @throws fail('key.missing') and the errors of the role in its organization. */
async function findManagedKey(tx: Transaction, { caller, params: { key_id: id } }: KeyInput<unknown>) {
  const key = isUuid(id) ? await tx.maybeOne(findOwnedKey(id)) : null
  if (key === null) throw fail('key.missing')
  const { account_id: accountId, organization_id: organizationId, audited } = key
  if (accountId !== caller.ownerId && caller.role !== 'admin') {
    if (organizationId === null) throw fail('key.missing')
    await lockForRole(tx, { params: { org_id: organizationId }, caller }, 'admin')
  }
  return { id, accountId, organizationId, audited }
}

function changeKey(
  input: KeyInput<{ budget: BudgetChanges }> & Writes<z.input<typeof ApiKey>>,
): Promise<Answer<z.input<typeof ApiKey>>> {
  const { budget } = input.body
  return input.transaction(async (tx) => {
    const { id, accountId, organizationId, audited } = await findManagedKey(tx, input)
    await tx.run(setKeyBudget(id, budget))
    const data = { ...audited, budget }
    await tx.run(appendAuditEvent(input, 'key.changed', { accountId, organizationId, data }))
    const changed = await tx.maybeOne(readKeyJson(id))
    if (changed === null) throw fail('key.missing')
    return answerJson(changed.json)
  })
}

function deleteKey(input: KeyInput<undefined> & Writes<undefined>): Promise<Answer<undefined>> {
  return input.transaction(async (tx) => {
    const { id, accountId, organizationId, audited } = await findManagedKey(tx, input)
    if ((await tx.maybeOne(deleteApiKey(id))) === null) throw fail('key.missing')
    await tx.run(appendAuditEvent(input, 'key.deleted', { accountId, organizationId, data: audited }))
    tx.afterCommit(() => input.edge.authenticator.forget(accountId))
    return undefined
  })
}
