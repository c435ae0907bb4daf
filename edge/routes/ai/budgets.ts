import { z } from 'zod'
import { readAccount } from '../../../sql/accounts/accounts.ts'
import { BUDGET_KINDS, listAmounts, readBudgets, setAccountBudget } from '../../../sql/budgets/budgets.ts'
import { readWithin } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { findOwnedKey } from '../../../sql/keys/api-keys.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { RowId, Timestamp } from '../../pipeline/request/schemas.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { buildBudgetSchema } from './budget-shapes.ts'
import { accountIdOf, resolveActingUser, UserId } from './callers.ts'

const Amount = z.number().min(0)
const BudgetState = z
  .strictObject({
    kind: z.enum(BUDGET_KINDS),
    limit: Amount.nullable().meta({ description: 'Null: no limit' }),
    own: Amount.nullable().meta({
      description:
        'Limit set for this account or key; 0: unlimited; null: none, for accounts the setting applies',
    }),
    used: Amount,
    reserved: Amount.meta({ description: 'Estimate for requests that have not ended' }),
    left: Amount.nullable(),
    unpriced_requests: z.int().min(0).meta({ description: 'Requests without a known price; they cost 0' }),
    resets_at: Timestamp,
  })
  .meta({ id: 'AiBudgetState' })
const BudgetUse = z
  .strictObject({
    account_id: z.int().nullable(),
    account: z.array(BudgetState).nullable(),
    key_id: z.uuid().nullable(),
    key: z.array(BudgetState).nullable(),
  })
  .meta({ id: 'AiBudgetUse' })

const AccountBudget = buildBudgetSchema((amount) => amount.min(0)).meta({ id: 'AiBudgetChange' })

/** Routes for budgets of AI usage. */
export const budgetRoutes = [
  route({
    method: 'get',
    path: '/usage/budget',
    summary: 'Get budgets of AI usage and what is left of them',
    description: `\`account\` has the budgets of the caller's account, \`key\` those of its API key, or of the own key \
\`key_id\`. Tokens are input and output, costs US dollars. Days and months are those of UTC. Admins have no account budgets; \
they may read those of another \`user_id\`. Null for a caller without an account or a key.`,
    query: z.object({ user_id: UserId.optional(), key_id: z.uuid().optional() }),
    response: BudgetUse,
    errors: ['ai.not_yours', 'key.missing'],
    reads: 'statistics',
    handle: async ({ query, caller, edge, reader }) => {
      const { userId, ownerId, isNamed } = resolveActingUser(caller, query.user_id)
      const accountId = isNamed && caller.role === 'admin' ? accountIdOf(userId) : ownerId
      const keyId = query.key_id === undefined ? (caller.key?.id ?? null) : query.key_id
      if (query.key_id !== undefined) await requireOwnKey(edge, caller, query.key_id)
      const text = await reader.text(readBudgets, [accountId, keyId, listAmounts(edge.settings.ai.budgets)])
      return answerJson(text!)
    },
  }),

  route({
    method: 'patch',
    path: '/usage/budget/:account_id',
    summary: 'Set the budgets of an account',
    description: `Each value overrides the setting, such as AI_BUDGET_DAY_TOKENS; 0 means unlimited, and null restores the \
setting. Omitted kinds do not change.`,
    auth: 'admin',
    params: z.object({ account_id: RowId }),
    body: AccountBudget,
    errors: ['account.missing', 'account.no_fields'],
    handle: (input) => {
      const { params, body } = input
      const id = params.account_id
      if (Object.keys(body).length === 0) throw fail('account.no_fields')
      return input.transaction(async (tx) => {
        if ((await readWithin(tx, readAccount, [id])) === null) throw fail('account.missing')
        await tx.run(setAccountBudget(id, body))
        await tx.run(appendAuditEvent(input, 'account.budget_changed', { accountId: id, data: body }))
        return undefined
      })
    },
  }),
]

/** @throws fail('key.missing') if the key belongs to another account and the caller is not an admin. */
async function requireOwnKey({ db }: Edge, caller: Caller, keyId: string): Promise<void> {
  const key = await db.maybeOne(findOwnedKey(keyId))
  if (key === null || (key.account_id !== caller.ownerId && caller.role !== 'admin'))
    throw fail('key.missing')
}
