import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import type { Caller } from '../../pipeline/auth.ts'

/** Whom a caller acts for. Accounts are their own user_id; who came without a credential is whoever they say. */
export interface Who {
  readonly userId: string
  /** The account whose a conversation must be; null: nobody's. */
  readonly ownerId: number | null
  /** Sees what is anybody's: an admin, or everybody where there is no authentication. */
  readonly all: boolean
  /** A user_id was given. */
  readonly named: boolean
}

const DEFAULT_USER = 'api-user'

export const UserId = z.string().trim().min(1).max(255)

/** @throws fail('ai.not_yours') when somebody who is no admin names another. */
export function whoOf(caller: Caller, userId: string | undefined): Who {
  const named = userId !== undefined
  const all = caller.role === 'admin'
  if (caller.ownerId === null) return { userId: userId ?? DEFAULT_USER, ownerId: null, all, named }
  const own = String(caller.ownerId)
  if (userId !== undefined && userId !== own && !all) throw fail('ai.not_yours')
  return { userId: userId ?? own, ownerId: caller.ownerId, all, named }
}

/** Whether a conversation is theirs. An account's is not that of whoever only calls themselves so. */
export function isTheirs(
  who: Who,
  conversation: { readonly user_id: string; readonly owner_id: number | null },
): boolean {
  // An admin who names nobody is asked nothing.
  if (who.all) return who.userId === conversation.user_id || (!who.named && who.ownerId !== null)
  return who.userId === conversation.user_id && who.ownerId === conversation.owner_id
}
