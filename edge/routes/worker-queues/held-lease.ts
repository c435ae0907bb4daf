import { z } from 'zod'
import type { Query } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import type { HeldLease } from '../../../sql/worker-queues/claims.ts'
import type { Edge } from '../../pipeline/context.ts'
import { WORK_SCOPE } from './claims.ts'

/** The lease that a request names. */

/** Options that the routes of a lease share. */
export const leaseOptions = {
  scope: WORK_SCOPE,
  allowsOrganizationKeys: true,
  params: z.object({ lease_id: z.string() }),
  errors: ['lease.missing'],
} as const

/** Runs a statement on a lease and returns the lease with its jobs. @throws fail('lease.missing') */
export async function requireHeld(
  { db }: Pick<Edge, 'db'>,
  id: string,
  build: (lease: string) => Query<{ json: HeldLease }>,
): Promise<HeldLease> {
  const held = isUuid(id) ? await db.maybeOne(build(id.toLowerCase())) : null
  if (held === null) throw fail('lease.missing')
  return held.json
}
