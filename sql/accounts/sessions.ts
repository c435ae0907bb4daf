import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'

/** Records the last use of sessions, and prunes expired ones. */

export interface UsedSession {
  readonly id: string
  /** Null if the address is unknown, because the client had disconnected. */
  readonly address: string | null
  /** Client's location as reported by a trusted proxy; null without one. */
  readonly place: string | null
}

/**
 * Records the last use and client address of sessions. Skips locked sessions and those that another edge recorded in
 * the last 30 s.
 */
export const recordSessionUse = (used: readonly UsedSession[]): Query<unknown> =>
  sql.type(noRows)`
    update session s set last_used_at = now(), last_address = coalesce(left(used.address, 100), s.last_address),
      last_place = case when used.address is null then s.last_place else used.place end
    from jsonb_to_recordset(${JSON.stringify(used)}::jsonb) as used(id uuid, address text, place text)
    where used.id = s.id and s.id = any(array(
      select id from session
      where id = any(${toIdArray(used)}) and coalesce(last_used_at < now() - interval '30 seconds', true)
      order by id for no key update skip locked))`

const toIdArray = (used: readonly UsedSession[]) =>
  sql.array(
    used.map(({ id }) => id),
    'uuid',
  )

/** Prunes expired refresh tokens, and sessions left without any. Returns the number of tokens deleted. */
export const deleteExpiredRefreshTokens = (batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with expired as (
      delete from refresh_token where digest in (
        select digest from refresh_token where expires_at < now() order by expires_at limit ${batch})
      returning session_id, digest
    ), emptied as (
      delete from session where id in (select session_id from expired) and not exists (
        select from refresh_token t where t.session_id = session.id and t.digest not in (select digest from expired))
    )
    select count(*)::int as count from expired`
