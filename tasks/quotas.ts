import { z } from 'zod'
import { QUOTA_KINDS, QUOTA_NAMES, type QuotaKind, type Quotas } from '../sql/quotas.ts'
import { count } from './setting-fields.ts'

/** Quota settings, one per kind. */

const settingName = <K extends QuotaKind>(kind: K): `QUOTA_${Uppercase<K>}` =>
  `QUOTA_${kind.toUpperCase() as Uppercase<K>}`

type QuotaFields = { [K in QuotaKind as `QUOTA_${Uppercase<K>}`]: ReturnType<typeof count> }

export const quotaShape = Object.fromEntries(
  QUOTA_NAMES.map((kind) => [settingName(kind), count(QUOTA_KINDS[kind].quota, 0, 2 ** 49)]),
) as QuotaFields

const Shape = z.object(quotaShape)

export const quotaSettings = (env: z.output<typeof Shape>): Quotas =>
  Object.fromEntries(QUOTA_NAMES.map((kind) => [kind, env[settingName(kind)]])) as Quotas
