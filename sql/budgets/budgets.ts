import { z } from 'zod'
import { noRows, type Queries, type Query, sql } from '../db.ts'
import { type Failure, fail } from '../errors.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Budgets of AI usage: limits of tokens and cost by UTC day and month, for accounts and API keys. */

/** Kinds of budgets, in the order of the SQL function `ai_budget_state`. Costs are in US dollars. */
export const BUDGET_KINDS = ['day_tokens', 'day_cost', 'month_tokens', 'month_cost'] as const
export type BudgetKind = (typeof BUDGET_KINDS)[number]

/** Budgets of each account from the settings; 0 means no limit. */
export type Budgets = Readonly<Record<BudgetKind, number>>

export const BUDGET_HOLDERS = ['account', 'key'] as const

/** Account and API key that pay for a request; null for none. */
export interface Payers {
  readonly accountId: number | null
  readonly keyId: string | null
}

const LimitedBudget = z.object({
  holder: z.enum(BUDGET_HOLDERS),
  kind: z.enum(BUDGET_KINDS),
  limit: z.number(),
  used: z.number(),
  reserved: z.number(),
  left: z.number(),
  resets_at: z.string(),
  /** Seconds until the budget resets. */
  resets_in_seconds: z.number(),
  exceeded: z.boolean(),
  /** True if ended requests alone have spent the budget. */
  spent: z.boolean(),
})
type LimitedBudget = z.output<typeof LimitedBudget>

/** Lists the budgets in the order of the kinds, as the statements take them. */
export const listAmounts = (budgets: Budgets): string[] => BUDGET_KINDS.map((kind) => String(budgets[kind]))

// The exceeded budget that resets last comes first. Budgets that only running requests reserve come last.
const lockBudgets = ({ accountId, keyId }: Payers, defaults: Budgets): Query<LimitedBudget> =>
  sql.prepared('ai_budget_lock', LimitedBudget)`
    select holder, kind, amount::float8 as limit, used::float8 as used, reserved::float8 as reserved,
      greatest(0, amount - used - reserved)::float8 as left, iso(resets_at) as resets_at,
      ceil(extract(epoch from resets_at - now()))::int as resets_in_seconds, exceeded, used >= amount as spent
    from ai_budget_lock(${accountId}::int, ${keyId}::uuid, ${sql.array(listAmounts(defaults), 'numeric')})
    order by exceeded desc, used >= amount desc, resets_at desc, holder, kind`

/** Estimated usage of a job. */
export interface BudgetHold {
  readonly jobId: string
  readonly tokens: number
  /** Cost in US dollars as an exact decimal; null if the price is unknown. */
  readonly cost: string | null
}

/** Returns the query that reserves an estimate until the job ends. */
export const insertHold = ({ accountId, keyId }: Payers, hold: BudgetHold): Query<unknown> =>
  sql.type(noRows)`
    insert into ai_budget_hold (job_id, account_id, key_id, tokens, cost)
    values (${hold.jobId}::uuid, ${accountId}::int, ${keyId}::uuid, ${hold.tokens}::bigint, coalesce(${hold.cost}::numeric, 0))`

/** The parts of a turn that determine its estimated usage. */
export interface TurnEstimate {
  readonly jobId: string
  readonly agentSlug: string
  /** Null for a new conversation. */
  readonly conversationId: string | null
  /** Size of what the request adds to the history. */
  readonly inputBytes: number
  /** True if the request names documents. */
  readonly hasDocuments: boolean
  readonly provider: string
  readonly model: string
  readonly historyMessages: number
  readonly historyTokens: number
  /** Limit of the text of documents. */
  readonly documentTokens: number
  /** Maximum length of an answer, unless the agent or an admin has set another one. */
  readonly maxTokens: number
}

/**
 * Returns the query that reserves the input and the longest answer of a turn until its job ends. Counts four bytes as a
 * token.
 */
export const insertTurnHold = ({ accountId, keyId }: Payers, turn: TurnEstimate): Query<unknown> =>
  sql.prepared('ai_budget_hold_turn', noRows)`
    with input as (
      select ceil((${turn.inputBytes}::int + coalesce((
          select octet_length(a.system_prompt) from ai_agent a where a.slug = ${turn.agentSlug}), 0)) / 4.0)
        + least(${turn.historyTokens}::int, coalesce(history.tokens, 0))
        + case when ${turn.hasDocuments}::boolean or history.has_documents then ${turn.documentTokens}::int else 0 end as tokens
      from (
        select ceil(sum(octet_length(m.content) + coalesce(octet_length(m.tool_results::text), 0)) / 4.0) as tokens, bool_or(m.document_ids <> '{}') as has_documents from (
          select content, tool_results, document_ids from ai_message where conversation_id = ${turn.conversationId}::uuid
          order by ordinal desc limit ${turn.historyMessages}::int) m) history
    ), output as (
      select least(coalesce((select max_tokens from ai_agent a where a.slug = ${turn.agentSlug}),
          (select max_tokens from llm_current), ${turn.maxTokens}::int),
        (select nullif(max_output, 0) from llm_model where vendor = ${turn.provider} and model_id = ${turn.model})) as tokens
    )
    insert into ai_budget_hold (job_id, account_id, key_id, tokens, cost)
    select ${turn.jobId}::uuid, ${accountId}::int, ${keyId}::uuid, i.tokens + o.tokens, coalesce((
      select (p.input * i.tokens + p.output * o.tokens) / 1000000 from llm_price p
      where p.vendor = ${turn.provider} and p.model_id = ${turn.model} and p.input is not null
        and p.valid_from <= (now() at time zone 'utc')::date
      order by p.valid_from desc limit 1), 0)
    from input i cross join output o`

// Wait after which running requests may have ended.
const RUNNING_RETRY_SECONDS = 5

/**
 * Reserves the estimated usage of a new job against the budgets of its payers. Call it after the job is enqueued,
 * because the job's mailbox is locked before rows. A request without an account and a key has no budget.
 *
 * @throws fail('quota.ai_budget') or fail('quota.ai_key_budget') if a budget is spent, or reserved by running requests.
 */
export async function reserveBudget(
  tx: Queries,
  payers: Payers,
  defaults: Budgets,
  createHold: () => Query<unknown>,
): Promise<void> {
  if (payers.accountId === null && payers.keyId === null) return
  const budgets = await tx.any(lockBudgets(payers, defaults))
  const [first] = budgets
  if (first === undefined) return
  if (first.exceeded) throw failExceeded(first)
  await tx.run(createHold())
}

function failExceeded({ exceeded: _, spent, ...budget }: LimitedBudget): Failure {
  const { holder, kind, limit, ...amounts } = budget
  const [period = '', unit = ''] = kind.split('_')
  return fail(
    holder === 'key' ? 'quota.ai_key_budget' : 'quota.ai_budget',
    {
      ...amounts,
      ...{ amount: limit, period, unit: unit === 'cost' ? 'US dollars' : unit },
      setting: budgetSettingName(kind),
    },
    { budget, retryAfter: spent ? Math.max(1, budget.resets_in_seconds) : RUNNING_RETRY_SECONDS },
  )
}

/** Returns the name of the setting for a kind of budgets. */
export const budgetSettingName = <K extends BudgetKind>(kind: K): `AI_BUDGET_${Uppercase<K>}` =>
  `AI_BUDGET_${kind.toUpperCase() as Uppercase<K>}`

const buildStatesJson = (holder: string, condition = 'true'): string => `
  (select json_agg(json_build_object('kind', s.kind, 'limit', s.amount, 'own', s.own, 'used', s.used, 'reserved', s.reserved,
      'left', case when s.amount is not null then greatest(0, s.amount - s.used - s.reserved) end, 'unpriced_requests', s.unpriced, 'resets_at', iso(s.resets_at)))
    from state s where s.holder = '${holder}' and ${condition})`

const ACCOUNT_EXISTS = 'exists (select from account a where a.id = $1::int and a.deleted_at is null)'

/** Budgets and usage of an account and of an API key; null for one that does not exist. */
export const readBudgets: ReadStatement<
  [account: number | null, key: string | null, defaults: readonly string[]]
> = {
  name: 'ai_budgets',
  text: `
    with state as materialized (select * from ai_budget_state($1::int, $2::uuid, $3::numeric[]))
    select json_build_object('account_id', $1::int, 'account', ${buildStatesJson('account', ACCOUNT_EXISTS)},
      'key_id', $2::uuid, 'key', ${buildStatesJson('key')})::text`,
}

/** Changes to budgets: absent kinds stay, null removes the row of a kind. */
export type BudgetChanges = { readonly [K in BudgetKind]?: number | null | undefined }

/** Sets the budgets that override the settings for an account. */
export const setAccountBudget = (accountId: number, changes: BudgetChanges): Query<unknown> =>
  setBudget(sql.fragment`account_id`, sql.fragment`${accountId}::int`, changes)

/** Sets the budgets of an API key. */
export const setKeyBudget = (keyId: string, changes: BudgetChanges): Query<unknown> =>
  setBudget(sql.fragment`key_id`, sql.fragment`${keyId}::uuid`, changes)

type Fragment = ReturnType<typeof sql.fragment>

const setBudget = (column: Fragment, holder: Fragment, changes: BudgetChanges): Query<unknown> =>
  sql.type(noRows)`
    with chosen as (
      select key as kind, (value #>> '{}')::numeric as amount from jsonb_each(${JSON.stringify(changes)}::jsonb)
    ), removed as (
      delete from ai_budget b using chosen c where b.${column} = ${holder} and b.kind = c.kind and c.amount is null
    )
    insert into ai_budget (${column}, kind, amount)
    select ${holder}, kind, amount from chosen where amount is not null
    on conflict (${column}, kind) do update set amount = excluded.amount`
