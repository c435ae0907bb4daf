import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import type { Caller } from '../../pipeline/auth.ts'

/** The user that a caller acts for. An account's user_id is its id; a caller without a credential may use any user_id. */
export interface Who {
  readonly userId: string
  /** The account that must own a conversation; null if it must have no owner. */
  readonly ownerId: number | null
  /** True if the caller may access all conversations: an admin, or any caller under `AUTH_LEVEL=none`. */
  readonly all: boolean
  /** True if the request has a user_id. */
  readonly named: boolean
}

const DEFAULT_USER = 'api-user'

export const UserId = z.string().trim().min(1).max(255)

/** @throws fail('ai.not_yours') if an account that is not an admin names another user. */
export function whoOf(caller: Caller, userId: string | undefined): Who {
  const named = userId !== undefined
  const all = caller.role === 'admin'
  if (caller.ownerId === null) return { userId: userId ?? DEFAULT_USER, ownerId: null, all, named }
  const own = String(caller.ownerId)
  if (userId !== undefined && userId !== own && !all) throw fail('ai.not_yours')
  return { userId: userId ?? own, ownerId: caller.ownerId, all, named }
}

/** The account id that a user_id may stand for; null if it has another format. */
export const accountIdOf = (userId: string): number | null =>
  /^[1-9]\d{0,8}$/.test(userId) ? Number(userId) : null

/**
 * True if the caller may access a conversation. The user_id of an account does not open conversations that the account
 * owns.
 */
export function isTheirs(
  who: Who,
  conversation: { readonly user_id: string; readonly owner_id: number | null },
): boolean {
  // A signed-in admin who names no user may access every conversation.
  if (who.all) return who.userId === conversation.user_id || (!who.named && who.ownerId !== null)
  return who.userId === conversation.user_id && who.ownerId === conversation.owner_id
}
