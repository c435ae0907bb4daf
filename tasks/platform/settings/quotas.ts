import { z } from 'zod'
import { QUOTA_KINDS, QUOTA_NAMES, type QuotaKind, type Quotas } from '../../../sql/quotas/quotas.ts'
import { countField } from './fields.ts'

/** Quota settings, one per kind. */

const settingNameOf = <K extends QuotaKind>(kind: K): `QUOTA_${Uppercase<K>}` =>
  `QUOTA_${kind.toUpperCase() as Uppercase<K>}`

type QuotaFields = { [K in QuotaKind as `QUOTA_${Uppercase<K>}`]: ReturnType<typeof countField> }

export const quotaShape = Object.fromEntries(
  QUOTA_NAMES.map((kind) => [settingNameOf(kind), countField(QUOTA_KINDS[kind].quota, 0, 2 ** 49)]),
) as QuotaFields

const QuotaEnvironment = z.object(quotaShape)

export const buildQuotas = (env: z.output<typeof QuotaEnvironment>): Quotas =>
  Object.fromEntries(QUOTA_NAMES.map((kind) => [kind, env[settingNameOf(kind)]])) as Quotas
