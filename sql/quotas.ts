import { z } from 'zod'
import { noRows, type Queries, type Query, sql } from './db.ts'
import { fail } from './errors.ts'
import type { ReadStatement } from './reader.ts'

/** How much an account may have of each kind: one table of kinds, of which `quota_used` counts each. */

interface Kind {
  /** The default of its setting; 0 would be any number. */
  readonly quota: number
  /** As descriptions name it. */
  readonly text: string
}

/** The kinds. The settings are `QUOTA_` and the kind in capitals. */
export const QUOTA_KINDS = {
  documents: { quota: 1_000_000, text: 'documents, with those in the trash' },
  bytes: { quota: 100_000_000_000, text: 'bytes of documents, with those in the trash' },
  pages: { quota: 10_000_000, text: 'pages of documents, with those in the trash' },
  organizations: { quota: 1000, text: 'organizations that the account has created' },
  keys: { quota: 100, text: 'API keys' },
  webhook_endpoints: { quota: 50, text: 'webhook endpoints' },
  pending_deliveries: { quota: 100_000, text: 'webhook deliveries that are not done' },
  conversations: { quota: 1_000_000, text: 'conversations' },
  collections: { quota: 1000, text: 'collections of documents' },
  waiting_jobs: { quota: 1_000_000, text: 'jobs that wait to run' },
} as const satisfies Record<string, Kind>

export type QuotaKind = keyof typeof QUOTA_KINDS
export const QUOTA_NAMES = Object.keys(QUOTA_KINDS) as readonly QuotaKind[]
/** The quotas of the settings; 0: any number. */
export type Quotas = Readonly<Record<QuotaKind, number>>

const Exceeded = z.object({ kind: z.enum(QUOTA_NAMES), quota: z.number() })

const exceededQuotas = (
  accountId: number,
  kinds: readonly QuotaKind[],
  quotas: Quotas,
): Query<z.output<typeof Exceeded>> => {
  const defaults = kinds.map((kind) => quotas[kind])
  return sql.prepared('quota_exceeded', Exceeded)`
    select kind, quota from quota_exceeded(${accountId}::int, ${sql.array([...kinds], 'text')}, ${sql.array(defaults, 'int8')})`
}

/** The first of these kinds of which an account has too much after what this transaction has added; null: none. */
export async function exceededQuota(
  tx: Queries,
  accountId: number | null,
  kinds: readonly QuotaKind[],
  quotas: Quotas,
): Promise<z.output<typeof Exceeded> | null> {
  if (accountId === null) return null
  const [exceeded] = await tx.any(exceededQuotas(accountId, kinds, quotas))
  return exceeded ?? null
}

/**
 * Refuses what this transaction has just added if its account now has too much of it; an account of null has no quotas.
 * @throws fail('quota.KIND')
 */
export async function requireQuota(
  tx: Queries,
  accountId: number | null,
  kinds: readonly QuotaKind[],
  quotas: Quotas,
): Promise<void> {
  const exceeded = await exceededQuota(tx, accountId, kinds, quotas)
  if (exceeded !== null) throw fail(`quota.${exceeded.kind}`, { quota: exceeded.quota })
}

/** What an account uses and may use of each kind: $1 account, $2 kinds, $3 their settings. No row: no such account. */
export const readQuotas: ReadStatement<
  [account: number, kinds: readonly string[], quotas: readonly number[]]
> = {
  name: 'quotas',
  text: `
    select json_build_object('quotas', (
      select json_agg(json_build_object('kind', given.kind, 'used', quota_used(a.id, given.kind),
        'quota', case when a.role = 'admin' then null else nullif(coalesce(own.quota, given.quota), 0) end,
        'own', own.quota, 'setting', 'QUOTA_' || upper(given.kind)) order by given.n)
      from unnest($2::text[], $3::bigint[]) with ordinality given(kind, quota, n)
      left join account_quota own on own.account_id = a.id and own.kind = given.kind))::text
    from account a where a.id = $1::int and a.deleted_at is null`,
}

/** Stores a setting that SQL functions need: the quota of pending deliveries, which `webhook_admitted` looks at. */
export const storePendingQuota = ({ pending_deliveries: quota }: Quotas): Query<unknown> =>
  sql.type(noRows)`
    insert into setting as s (name, value) values ('QUOTA_PENDING_DELIVERIES', ${quota})
    on conflict on constraint setting_pkey do update set value = excluded.value where s.value <> excluded.value`

/** Gives an account quotas of its own, in place of those of the settings; null takes one back. */
export const setQuotas = (
  accountId: number,
  chosen: { readonly [K in QuotaKind]?: number | null | undefined },
): Query<unknown> =>
  sql.type(noRows)`
    with chosen as (
      select key as kind, (value #>> '{}')::bigint as quota from jsonb_each(${JSON.stringify(chosen)}::jsonb)
    ), taken_back as (
      delete from account_quota q using chosen c where q.account_id = ${accountId} and q.kind = c.kind and c.quota is null
    )
    insert into account_quota (account_id, kind, quota)
    select ${accountId}, kind, quota from chosen where quota is not null
    on conflict on constraint account_quota_pkey do update set quota = excluded.quota`
