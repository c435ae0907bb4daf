import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import type { Caller } from '../../pipeline/auth.ts'

/** The user that a caller acts for. An account is its own user_id; without a credential, the caller names any. */
export interface Who {
  readonly userId: string
  /** The account that must own a conversation; null: it must have no owner. */
  readonly ownerId: number | null
  /** May see everybody's: an admin, or any caller where there is no authentication. */
  readonly all: boolean
  /** A user_id was given. */
  readonly named: boolean
}

const DEFAULT_USER = 'api-user'

export const UserId = z.string().trim().min(1).max(255)

/** @throws fail('ai.not_yours') when a caller who is not an admin names another user. */
export function whoOf(caller: Caller, userId: string | undefined): Who {
  const named = userId !== undefined
  const all = caller.role === 'admin'
  if (caller.ownerId === null) return { userId: userId ?? DEFAULT_USER, ownerId: null, all, named }
  const own = String(caller.ownerId)
  if (userId !== undefined && userId !== own && !all) throw fail('ai.not_yours')
  return { userId: userId ?? own, ownerId: caller.ownerId, all, named }
}

/** The id of the account that a user_id may name; null: it names none. */
export const accountIdOf = (userId: string): number | null =>
  /^[1-9]\d{0,8}$/.test(userId) ? Number(userId) : null

/** Whether a conversation is theirs. One that an account owns is not for a caller who merely claims its user_id. */
export function isTheirs(
  who: Who,
  conversation: { readonly user_id: string; readonly owner_id: number | null },
): boolean {
  // An admin who names no user may see every conversation.
  if (who.all) return who.userId === conversation.user_id || (!who.named && who.ownerId !== null)
  return who.userId === conversation.user_id && who.ownerId === conversation.owner_id
}
