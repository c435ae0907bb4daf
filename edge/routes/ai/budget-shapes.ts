import { z } from 'zod'
import { BUDGET_KINDS, type BudgetKind } from '../../../sql/budgets/budgets.ts'

const MAX_TOKENS = Number.MAX_SAFE_INTEGER
const MAX_COST = 1_000_000_000

/** Builds the schema of changes to budgets: absent kinds stay, null removes a kind. `limit` narrows the amounts. */
export function buildBudgetSchema(limit: (amount: z.ZodNumber) => z.ZodNumber) {
  const amountOf = (kind: BudgetKind): z.ZodNumber =>
    kind.endsWith('tokens') ? limit(z.int()).max(MAX_TOKENS) : limit(z.number()).max(MAX_COST)
  return z.strictObject(
    Object.fromEntries(BUDGET_KINDS.map((kind) => [kind, amountOf(kind).nullable().optional()])) as Record<
      BudgetKind,
      z.ZodOptional<z.ZodNullable<z.ZodNumber>>
    >,
  )
}
