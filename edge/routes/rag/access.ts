import type { Viewer } from '../../../sql/rag/reads.ts'
import { type Caller, findRequiredRole, findRoleFailure } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'

/** Checks access that depends on the kind of a collection, which a route cannot declare. */

/**
 * Converts the caller to a viewer of collections. Admins, and all callers under `AUTH_LEVEL=none`, see all collections.
 */
export const viewerOf = ({ ownerId, role }: Caller): Viewer => ({ ownerId, seesAll: role === 'admin' })

/** Requires that the caller may index files and delete collections of files. @throws fail('auth.forbidden') */
export function requireOperator({ settings }: Edge, caller: Caller): void {
  const role = settings.openAreas.has('rag') ? null : findRequiredRole('operator', settings)
  const refusal = role === null ? null : findRoleFailure(caller, role)
  if (refusal !== null) throw refusal
}
