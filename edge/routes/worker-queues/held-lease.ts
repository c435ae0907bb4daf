import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import { type HeldLease, renewWorkerLease } from '../../../sql/worker-queues/claims.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { viewerOf } from './access.ts'

/** Renews a lease and returns its jobs. @throws fail('lease.missing') */
export async function requireLease(
  edge: Edge,
  caller: Caller,
  id: string,
  wanted: { readonly ids: readonly string[]; readonly attempts: readonly number[] } | null,
): Promise<HeldLease> {
  const held = isUuid(id)
    ? await edge.db.maybeOne(renewWorkerLease(id.toLowerCase(), viewerOf(caller), wanted))
    : null
  if (held === null) throw fail('lease.missing')
  return held.json
}
