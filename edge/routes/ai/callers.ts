import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import type { Caller } from '../../pipeline/access/auth.ts'

/**
 * The user for whom a caller acts. The user_id of an account is its id. A caller without a credential may use any
 * user_id.
 */
export interface ActingUser {
  readonly userId: string
  /** Account that must own a conversation; null if the conversation must have no owner. */
  readonly ownerId: number | null
  /** True if the caller may access all conversations: an admin, or any caller under `AUTH_LEVEL=none`. */
  readonly seesAll: boolean
  /** True if the request has a user_id. */
  readonly isNamed: boolean
}

const DEFAULT_USER = 'api-user'

export const UserId = z.string().trim().min(1).max(255)

/**
 * Returns the user for whom the caller acts.
 * @throws fail('ai.not_yours') if an account that is not an admin names another user.
 */
export function resolveActingUser(caller: Caller, userId: string | undefined): ActingUser {
  const isNamed = userId !== undefined
  const seesAll = caller.role === 'admin'
  if (caller.ownerId === null) return { userId: userId ?? DEFAULT_USER, ownerId: null, seesAll, isNamed }
  const own = String(caller.ownerId)
  if (userId !== undefined && userId !== own && !seesAll) throw fail('ai.not_yours')
  return { userId: userId ?? own, ownerId: caller.ownerId, seesAll, isNamed }
}

/** Returns the account id that a user_id may stand for; null if it has another format. */
export const accountIdOf = (userId: string): number | null =>
  /^[1-9]\d{0,8}$/.test(userId) ? Number(userId) : null

/**
 * True if the caller may access a conversation. Without a credential, the user_id of an account gives no access to
 * conversations that the account owns.
 */
export function mayAccess(
  user: ActingUser,
  conversation: { readonly user_id: string; readonly owner_id: number | null },
): boolean {
  // A signed-in admin who names no user may access every conversation.
  if (user.seesAll) return user.userId === conversation.user_id || (!user.isNamed && user.ownerId !== null)
  return user.userId === conversation.user_id && user.ownerId === conversation.owner_id
}
