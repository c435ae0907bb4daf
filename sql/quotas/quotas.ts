import { z } from 'zod'
import { noRows, type Queries, type Query, sql } from '../db.ts'
import { fail } from '../errors.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Account quotas. Each kind is declared here; the SQL function `quota_usage` counts its usage. */

interface QuotaKindDefinition {
  /** Default quota; 0 means no limit. */
  readonly quota: number
  /** Name of the counted things in descriptions. */
  readonly text: string
}

/** Kinds of quotas. The setting of a kind is named `QUOTA_` plus the kind in capitals. */
export const QUOTA_KINDS = {
  documents: { quota: 1_000_000, text: 'documents, including the trash' },
  bytes: { quota: 100_000_000_000, text: 'bytes of documents, including the trash' },
  pages: { quota: 10_000_000, text: 'pages of documents, including the trash' },
  organizations: { quota: 1000, text: 'organizations created by the account' },
  keys: { quota: 100, text: 'API keys' },
  webhook_endpoints: { quota: 50, text: 'webhook endpoints' },
  pending_deliveries: { quota: 100_000, text: 'pending webhook deliveries' },
  conversations: { quota: 1_000_000, text: 'conversations' },
  collections: { quota: 1000, text: 'document collections' },
  speech_characters: { quota: 10_000_000, text: 'characters of stored speeches' },
  schedules: { quota: 100, text: 'schedules' },
  worker_queues: { quota: 100, text: 'worker queues created by the account' },
  waiting_jobs: { quota: 1_000_000, text: 'waiting jobs' },
} as const satisfies Record<string, QuotaKindDefinition>

export type QuotaKind = keyof typeof QUOTA_KINDS
export const QUOTA_NAMES = Object.keys(QUOTA_KINDS) as readonly QuotaKind[]
/** Quotas from the settings; 0 means no limit. */
export type Quotas = Readonly<Record<QuotaKind, number>>

const ExceededQuota = z.object({ kind: z.enum(QUOTA_NAMES), quota: z.number() })

const listExceededQuotas = (
  accountId: number,
  kinds: readonly QuotaKind[],
  quotas: Quotas,
): Query<z.output<typeof ExceededQuota>> => {
  const defaults = kinds.map((kind) => quotas[kind])
  return sql.prepared('quota_exceeded', ExceededQuota)`
    select kind, quota from quota_exceeded(${accountId}::int, ${sql.array([...kinds], 'text')}, ${sql.array(defaults, 'int8')})`
}

/**
 * Returns the first of these kinds whose quota the account exceeds, including this transaction's additions; null if
 * there is none.
 */
export async function findExceededQuota(
  tx: Queries,
  accountId: number | null,
  kinds: readonly QuotaKind[],
  quotas: Quotas,
): Promise<z.output<typeof ExceededQuota> | null> {
  if (accountId === null) return null
  const [exceeded] = await tx.any(listExceededQuotas(accountId, kinds, quotas))
  return exceeded ?? null
}

/**
 * Rejects this transaction's additions if they exceed a quota of the account. A null account has no quotas.
 *
 * @throws fail('quota.KIND')
 */
export async function requireQuota(
  tx: Queries,
  accountId: number | null,
  kinds: readonly QuotaKind[],
  quotas: Quotas,
): Promise<void> {
  const exceeded = await findExceededQuota(tx, accountId, kinds, quotas)
  if (exceeded !== null) throw fail(`quota.${exceeded.kind}`, { quota: exceeded.quota })
}

/**
 * Usage and quota of each kind. $1 is the account, $2 the kinds, $3 their settings. No row if the account does not
 * exist.
 */
export const readQuotas: ReadStatement<
  [account: number, kinds: readonly string[], quotas: readonly number[]]
> = {
  name: 'quotas',
  text: `
    select json_build_object('quotas', (
      select json_agg(json_build_object('kind', given.kind, 'used', quota_usage(a.id, given.kind),
        'quota', case when a.role = 'admin' then null else nullif(coalesce(own.quota, given.quota), 0) end,
        'own', own.quota, 'setting', 'QUOTA_' || upper(given.kind)) order by given.n)
      from unnest($2::text[], $3::bigint[]) with ordinality given(kind, quota, n)
      left join account_quota own on own.account_id = a.id and own.kind = given.kind))::text
    from account a where a.id = $1::int and a.deleted_at is null`,
}

/** Stores the quota for pending deliveries as a database setting, which the SQL function `webhook_admit` reads. */
export const storePendingQuota = ({ pending_deliveries: quota }: Quotas): Query<unknown> =>
  sql.type(noRows)`
    insert into setting as s (name, value) values ('QUOTA_PENDING_DELIVERIES', ${quota})
    on conflict on constraint setting_pkey do update set value = excluded.value where s.value <> excluded.value`

/** Sets the quotas that override the settings for an account. Null removes an override. */
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
