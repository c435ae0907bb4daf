import { toPublicName } from '../../../tasks/blog/public.ts'
import type { Caller } from '../../pipeline/access/auth.ts'

/** Returns the account of a caller as an author or editor, with the name that posts and revisions show. */
export function toEditor(caller: Caller): { readonly id: number | null; readonly name: string | null } {
  const { full_name: name } = JSON.parse(caller.profile) as { full_name: string | null }
  return { id: caller.ownerId, name: toPublicName(name) }
}
