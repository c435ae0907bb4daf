import { z } from 'zod'
import { type Query, sql } from '../db.ts'

/** Accounts that are to be deleted at a time, which their owners may take back until then. */

const Standing = z.object({
  json: z.string(),
  /** Whether it is to be deleted, and whether that time has come. */
  marked: z.boolean(),
  due: z.boolean(),
})

const STANDING = sql.fragment`account_json(a)::text as json, a.deletion_at is not null as marked,
  coalesce(a.deletion_at <= now(), false) as due`

/** Locks an account, and says whether it is to be deleted. */
export const lockStanding = (id: number): Query<z.output<typeof Standing>> =>
  sql.type(Standing)`
    select ${STANDING} from account a where a.id = ${id} and a.deleted_at is null for no key update`

/**
 * Has an account deleted in so many days, and until then nothing changes for it.
 * @throws account.last_admin when no active admin would stay.
 */
export const markForDeletion = (id: number, days: number): Query<z.output<typeof Standing>> =>
  sql.type(Standing)`
    update account a set deletion_at = now() + make_interval(days => ${days}::int), updated_at = now()
    where a.id = ${id} and a.deleted_at is null returning ${STANDING}`

/**
 * Deactivates an account and has it deleted as soon as that can be.
 * @throws account.last_admin when no active admin would stay.
 */
export const deactivateForDeletion = (id: number): Query<{ email: string }> =>
  sql.type(z.object({ email: z.string() }))`
    update account set deletion_at = now(), is_active = false, updated_at = now()
    where id = ${id} and deleted_at is null returning email`

/** Takes the deletion of a locked account back; no row when there is none to come. */
export const unmarkForDeletion = (id: number): Query<z.output<typeof Standing>> =>
  sql.type(Standing)`
    update account a set deletion_at = null, updated_at = now()
    where a.id = ${id} and a.deletion_at is not null returning ${STANDING}`

/** Whether the time of an account has come. */
export const isDue = (id: number): Query<{ due: boolean }> =>
  sql.type(z.object({ due: z.boolean() }))`
    select exists (select from account where id = ${id} and deletion_at <= now()) as due`

/** Accounts whose time has come, after an id; not those whose deletion, in this mailbox, has failed within the last hour. */
export const dueAccounts = (after: number, max: number, mailbox: string): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    select id from account where deletion_at <= now() and id > ${after} and not exists (
      select from job where status = 'failed' and finished_at > now() - interval '1 hour' and mailbox = ${mailbox} || account.id)
    order by id limit ${max}`

const Notice = z.object({
  email: z.string(),
  full_name: z.string().nullable(),
  /** To the minute, in UTC. */
  at: z.string(),
})

/** What an account is told of its deletion; no row when there is none to come. */
export const deletionNotice = (id: number): Query<z.output<typeof Notice>> =>
  sql.type(Notice)`
    select email, full_name, to_char(deletion_at at time zone 'utc', 'YYYY-MM-DD HH24:MI') as at
    from account where id = ${id} and deleted_at is null and deletion_at > now()`
