import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import { LimitedInvite } from '../orgs/invites.ts'

const LeaveOutcome = z.object({
  inherited: z.array(z.object({ organization_id: z.number(), heir_id: z.number() })),
  deleted: z.array(z.object({ organization_id: z.number(), slug: z.string() })),
  invites: z.array(LimitedInvite),
})
/** Changes to the organizations of which an account was the only active owner, and to the invites that it sent. */
export type LeaveOutcome = z.output<typeof LeaveOutcome>

/** Maximum number of organizations that an account leaves in one transaction, which locks them. */
export const LEAVE_BATCH_SIZE = 500

/**
 * Marks an account as deleted and removes it from at most `max` organizations. Those without another owner pass to an
 * heir or are deleted. No row if the account does not exist. The task `accounts.purge` deletes its rows.
 * @throws account.last_admin if no active admin would remain.
 */
export const deleteAccount = (id: number, max = LEAVE_BATCH_SIZE): Query<LeaveOutcome & { email: string }> =>
  sql.type(
    LeaveOutcome.extend({ email: z.string() }),
  )`select email, inherited, deleted, invites from account_delete(${id}, ${max}::int)`

/** Removes a deleted account from at most `max` more organizations, and returns their number as `organizations`. */
export const leaveOrganizations = (
  id: number,
  max = LEAVE_BATCH_SIZE,
): Query<LeaveOutcome & { organizations: number }> =>
  sql.type(LeaveOutcome.extend({ organizations: z.number() }))`
    select organizations, inherited, deleted, invites from account_leave(${id}, ${max}::int)`

/** Deletions of accounts, immediate or scheduled. Owners can cancel a scheduled one until it is due. */

const DeletionState = z.object({
  json: z.string(),
  /** True if a deletion is scheduled. `due` is true if its time has come. */
  marked: z.boolean(),
  due: z.boolean(),
})

const DELETION_STATE_COLUMNS = sql.fragment`account_json(a)::text as json, a.deletion_at is not null as marked,
  coalesce(a.deletion_at <= now(), false) as due`

/** Locks an account and returns the state of its deletion. */
export const lockDeletion = (id: number): Query<z.output<typeof DeletionState>> =>
  sql.type(DeletionState)`
    select ${DELETION_STATE_COLUMNS} from account a where a.id = ${id} and a.deleted_at is null for no key update`

/**
 * Schedules the deletion of an account in `days`. The account works normally until then.
 * @throws account.last_admin if no active admin would remain.
 */
export const scheduleDeletion = (id: number, days: number): Query<z.output<typeof DeletionState>> =>
  sql.type(DeletionState)`
    update account a set deletion_at = now() + make_interval(days => ${days}::int), updated_at = now()
    where a.id = ${id} and a.deleted_at is null returning ${DELETION_STATE_COLUMNS}`

const Deactivation = LeaveOutcome.omit({ deleted: true }).extend({ json: z.string() })

/**
 * Deactivates an account, and makes its deletion due now if `isForDeletion`. Organizations of which it is the only
 * active owner get another one. No row if the account does not exist.
 * @throws account.last_admin if no active admin would remain.
 */
export const deactivateAccount = (id: number, isForDeletion = false): Query<z.output<typeof Deactivation>> =>
  sql.type(Deactivation)`
    select profile as json, inherited, invites from account_deactivate(${id}, ${isForDeletion})`

/** Cancels the deletion of a locked account. No row if none is scheduled. */
export const unscheduleDeletion = (id: number): Query<z.output<typeof DeletionState>> =>
  sql.type(DeletionState)`
    update account a set deletion_at = null, updated_at = now()
    where a.id = ${id} and a.deletion_at is not null returning ${DELETION_STATE_COLUMNS}`

const DueDeletion = z.object({
  due: z.boolean(),
  /** True if the deletion has been due for a week, so that it no longer waits for the payment provider. */
  overdue: z.boolean(),
})

/** Checks if the deletion of an account is due. */
export const checkDeletionDue = (id: number): Query<z.output<typeof DueDeletion>> =>
  sql.type(DueDeletion)`
    select exists (select from account where id = ${id} and deletion_at <= now()) as due,
      exists (select from account where id = ${id} and deletion_at <= now() - interval '7 days') as overdue`

/** Returns the active admins. */
export const listActiveAdmins = (): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    select id from account where role = 'admin' and is_active order by id limit 100`

/**
 * Finds accounts after an id whose deletion is due. Skips accounts whose deletion job, in the mailbox `mailbox` plus
 * account id, failed within the last hour.
 */
export const findDueAccounts = (after: number, max: number, mailbox: string): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    select id from account where deletion_at <= now() and id > ${after} and not exists (
      select from job where status = 'failed' and finished_at > now() - interval '1 hour' and mailbox = ${mailbox} || account.id)
    order by id limit ${max}`

const DeletionNotice = z.object({
  email: z.string(),
  full_name: z.string().nullable(),
  /** Time of the deletion in UTC, to the minute. */
  at: z.string(),
})

/** Reads the pending deletion of an account for its notice. No row if none is scheduled. */
export const readDeletionNotice = (id: number): Query<z.output<typeof DeletionNotice>> =>
  sql.type(DeletionNotice)`
    select email, full_name, to_char(deletion_at at time zone 'utc', 'YYYY-MM-DD HH24:MI') as at
    from account where id = ${id} and deleted_at is null and deletion_at > now()`
