import type { Viewer } from '../../../sql/rag/reads.ts'
import { type Caller, requireRole, roleFor } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'

/** Who may do what with a collection: that depends on what it has, which no declaration of a route knows. */

/** Who looks at collections. Admins, and everybody where there is no authentication, see those of all. */
export const viewerOf = ({ ownerId, role }: Caller): Viewer => ({ ownerId, seesAll: role === 'admin' })

/** @throws fail('auth.forbidden') for a caller who may not index files, nor delete collections of them. */
export function requireOperator({ settings }: Edge, caller: Caller): void {
  const role = settings.openAreas.has('rag') ? null : roleFor('operator', settings)
  const refusal = role === null ? null : requireRole(caller, role)
  if (refusal !== null) throw refusal
}
