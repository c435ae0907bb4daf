import type { Viewer } from '../../../sql/rag/reads.ts'
import { type Caller, requireRole, roleFor } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'

/** Access checks that depend on the kind of a collection, so that a route cannot declare them. */

/** The caller as a viewer of collections. Admins, and all callers under `AUTH_LEVEL=none`, see all collections. */
export const viewerOf = ({ ownerId, role }: Caller): Viewer => ({ ownerId, seesAll: role === 'admin' })

/** @throws fail('auth.forbidden') if the caller may not index files or delete collections of files. */
export function requireOperator({ settings }: Edge, caller: Caller): void {
  const role = settings.openAreas.has('rag') ? null : roleFor('operator', settings)
  const refusal = role === null ? null : requireRole(caller, role)
  if (refusal !== null) throw refusal
}
