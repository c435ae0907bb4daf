import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { defineTask } from '../task.ts'
import type { Domain as DomainShape } from './ports.ts'

export const Domain = z.strictObject({
  id: z.string(),
  name: z.string(),
  status: z.string(),
  region: z.string().nullable(),
  created_at: z.string().nullable(),
})

export const DomainWithRecords = Domain.extend({
  records: z.array(
    z.strictObject({
      purpose: z.string().nullable(),
      type: z.string(),
      name: z.string(),
      value: z.string(),
      ttl: z.string().nullable(),
      priority: z.int().nullable(),
      status: z.string().nullable(),
    }),
  ),
})

const COMMON_OPTIONS = { queue: 'comms', pool: 'io', timeoutSeconds: 60 } as const

/** Lists the account's domains at the email provider. */
export const listDomains = defineTask({
  ...COMMON_OPTIONS,
  name: 'comms.domains',
  payload: z.strictObject({}),
  result: z.array(Domain),
  run: async ({ providers, signal }) => (await providers.comms.domains.list(signal)).map(toDomain),
})

/** Adds a domain to the account. If the domain exists, returns it unchanged, so that a retry is safe. */
export const addDomain = defineTask({
  ...COMMON_OPTIONS,
  name: 'comms.add-domain',
  actor: ({ name }) => `domain:${name}`,
  payload: z.strictObject({ name: z.string(), region: z.string().optional() }),
  result: DomainWithRecords,
  run: async ({ providers, signal }, { name, region }) => {
    const { records, ...domain } = await providers.comms.domains.add(name, region, signal)
    return { ...toDomain(domain), records: [...records] }
  },
})

/** Asks the provider to recheck a domain's DNS. */
export const checkDomain = defineTask({
  ...COMMON_OPTIONS,
  name: 'comms.check-domain',
  actor: ({ name }) => `domain:${name}`,
  payload: z.strictObject({ name: z.string() }),
  result: DomainWithRecords,
  run: async ({ providers, signal }, { name }) => {
    const found = await providers.comms.domains.check(name, signal)
    if (found === null) throw fail('domain.missing')
    const { records, ...domain } = found
    return { ...toDomain(domain), records: [...records] }
  },
})

function toDomain({ id, name, status, region, created_at }: DomainShape) {
  return { id, name, status, region, created_at }
}
