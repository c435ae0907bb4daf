import { randomBytes } from 'node:crypto'
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import {
  countAdmins,
  endSessions,
  findCredentialsByEmail,
  findRecipientById,
  insertAccount,
  notifyAccountChanged,
  setPassword,
  upsertAdmin,
} from '../../sql/accounts/accounts.ts'
import { lockFactors, revokeCredentials } from '../../sql/accounts/credentials.ts'
import { unscheduleDeletion } from '../../sql/accounts/deletions.ts'
import { deleteTotp } from '../../sql/accounts/totp.ts'
import { type AuditKind, appendAudit } from '../../sql/audit/audit.ts'
import type { Database, Query } from '../../sql/db.ts'
import {
  countSelectedJobs,
  type JobFilter,
  type JobSelection,
  listSelectedIds,
} from '../../sql/jobs/search.ts'
import { unlockLogin } from '../../sql/limits/limits.ts'
import { digestOf } from '../../tasks/accounts/tokens.ts'
import type { BlobSettings } from '../../tasks/documents/blobs/blobs.ts'
import { findTask } from '../../tasks/index.ts'
import { UsageError } from '../../tasks/platform/command.ts'
import { AccountAddress } from '../../tasks/platform/email-address.ts'
import { SecretKeys } from '../../tasks/platform/keys.ts'
import { type KeySettings, loadSecretKeys } from '../../tasks/platform/process.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import { retryJobs } from '../../tasks/retry.ts'
import { countSealedTexts, reseal } from '../../tasks/system/reseal.ts'
import type { JobSettings } from '../../tasks/task.ts'
import { createPasswords } from '../passwords/passwords.ts'
import { exportToFile } from './export.ts'

export const USAGE = `Usage: npm run admin -- COMMAND
  create-admin EMAIL [--new-password]   makes the account an admin; creates it if it does not exist
  create-user EMAIL                     creates an account without admin rights
  unlock EMAIL                          unlocks an address after failed logins
  disable-totp EMAIL                    disables one-time codes for a user who has lost the device
  revoke-sessions EMAIL                 revokes all sessions of an account
  reseal                                seals stored texts under SECRET_KEY that SECRET_KEYS_PREVIOUS opens
  export EMAIL FILE                     writes all data of an account and its files into a zip archive
  retry-failed [QUEUE]                  retries all failed jobs, or those of one queue
    [--task NAME] [--code ERROR_CODE] [--owner ACCOUNT_ID] [--since TIME] [--limit N] [--dry-run]`

/** Settings of the commands: those of added jobs and of stored files, the retention of failed jobs, and the keys. */
export type AdminSettings = JobSettings & BlobSettings & Pick<Settings, 'jobRetention'> & KeySettings

/**
 * Runs an `npm run admin` command, reports its progress through `say`, and returns the lines of its report.
 * @throws UsageError
 */
export async function runAdmin(
  args: readonly string[],
  db: Database,
  settings: AdminSettings,
  say: (line: string) => void = () => {},
): Promise<string[]> {
  const [command, ...rest] = args
  switch (command) {
    case 'create-admin': {
      const { values, positionals } = parseOptions(rest, { 'new-password': { type: 'boolean' } })
      return createAdmin(db, parseEmail(positionals), values['new-password'] === true)
    }
    case 'create-user': {
      const email = parseEmail(parseOptions(rest, {}).positionals)
      return [`${email} is a new user`, `Password: ${await createUser(db, email)}`]
    }
    case 'unlock':
      return unlockAccount(db, parseEmail(parseOptions(rest, {}).positionals))
    case 'disable-totp':
      return disableTotp(db, parseEmail(parseOptions(rest, {}).positionals))
    case 'revoke-sessions':
      return revokeSessions(db, parseEmail(parseOptions(rest, {}).positionals))
    case 'reseal': {
      if (rest.length > 0) throw new UsageError(USAGE)
      return resealTexts(db, settings, say)
    }
    case 'export': {
      const [email, file, ...more] = parseOptions(rest, {}).positionals
      if (email === undefined || file === undefined || more.length > 0) throw new UsageError(USAGE)
      return exportToFile(db, parseEmail([email]), file, settings)
    }
    case 'retry-failed':
      return retryFailed(db, parseRetryFailed(rest), settings, say)
    default:
      throw new UsageError(USAGE)
  }
}

/** @throws UsageError for an unknown option. */
function parseOptions<const T extends ParseArgsOptionsConfig>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch {
    throw new UsageError(USAGE)
  }
}

function parseEmail([argument, ...more]: readonly string[]): string {
  if (argument === undefined || more.length > 0) throw new UsageError(USAGE)
  const email = AccountAddress.safeParse(argument)
  if (!email.success) throw new UsageError(`Not an email address: ${argument}`)
  return email.data
}

async function createAdmin(db: Database, email: string, newPassword: boolean): Promise<string[]> {
  const { password, passwordHash } = await choosePassword()
  return db.transaction(async (tx) => {
    await tx.run(lockFactors(email))
    const row = await tx.maybeOne(upsertAdmin(email, passwordHash, true))
    const created = row?.change === 'created'
    const { id } = row ?? (await tx.one(findCredentialsByEmail(email)))
    if (created) await tx.run(auditCommand('account.registered', id, { role: 'admin' }))
    else if (row !== null)
      await tx.run(auditCommand('account.role_changed', id, { from: row.former_role, to: 'admin' }))
    if (row !== null && (await tx.maybeOne(unscheduleDeletion(id))) !== null)
      await tx.run(auditCommand('account.deletion_cancelled', id))
    if (newPassword && !created) {
      await tx.run(setPassword(id, passwordHash))
      // A stranger may have registered an unverified address, so revoke all its credentials.
      const { is_verified: isVerified } = await tx.one(findRecipientById(id))
      await tx.run(isVerified ? endSessions(id, null) : revokeCredentials(id))
      await tx.run(auditCommand('account.password_reset', id))
    }
    await tx.run(notifyAccountChanged(id))
    const state = row === null ? 'is already an admin' : created ? 'is a new admin' : 'is now an admin'
    const { admins } = await tx.one(countAdmins())
    const adminCount = admins === 1 ? 'It is the only active admin' : `There are ${admins} active admins`
    if (newPassword || created) return [`${email} ${state}`, `Password: ${password}`, adminCount]
    return [`${email} ${state}; its password is unchanged (--new-password sets a new one)`, adminCount]
  })
}

async function choosePassword(): Promise<{ password: string; passwordHash: string }> {
  const password = randomBytes(15).toString('base64url')
  const passwords = createPasswords()
  return { password, passwordHash: await passwords.hash(password).finally(() => passwords.close()) }
}

/** Creates an account without admin rights and returns its password. @throws account.email_taken */
export async function createUser(db: Database, email: string): Promise<string> {
  const { password, passwordHash } = await choosePassword()
  await db.transaction(async (tx) => {
    const account = { email, passwordHash, fullName: null, role: 'user', isActive: true } as const
    const { id } = await tx.one(insertAccount(account))
    await tx.run(auditCommand('account.registered', id))
  })
  return password
}

async function unlockAccount(db: Database, email: string): Promise<string[]> {
  const removed = await db.run(unlockLogin(digestOf(email)))
  return [removed > 0 ? `${email} is unlocked` : `${email} had no failed logins`]
}

async function disableTotp(db: Database, email: string): Promise<string[]> {
  return db.transaction(async (tx) => {
    const account = await tx.maybeOne(findCredentialsByEmail(email))
    if (account === null) throw new UsageError(`No account with the address ${email}`)
    if ((await tx.maybeOne(deleteTotp(account.id))) === null) return [`${email} has no one-time codes`]
    await tx.run(auditCommand('account.totp_disabled', account.id))
    await tx.run(notifyAccountChanged(account.id))
    return [`One-time codes of ${email} are disabled`]
  })
}

async function revokeSessions(db: Database, email: string): Promise<string[]> {
  return db.transaction(async (tx) => {
    const account = await tx.maybeOne(findCredentialsByEmail(email))
    if (account === null) throw new UsageError(`No account with the address ${email}`)
    const ended = await tx.run(endSessions(account.id, null))
    if (ended > 0) await tx.run(auditCommand('session.ended', account.id))
    await tx.run(notifyAccountChanged(account.id))
    return [`Sessions of ${email} revoked: ${ended}`]
  })
}

async function resealTexts(
  db: Database,
  settings: KeySettings,
  say: (line: string) => void,
): Promise<string[]> {
  const keys = new SecretKeys({ secrets: loadSecretKeys(settings), stored: [] })
  const { renewed } = await reseal(db, keys, {
    signal: new AbortController().signal,
    onProgress: (table, count) => say(`${count} sealed, at ${table}`),
  })
  const { current, previous, unknown } = await countSealedTexts(db, keys)
  return [
    `Texts sealed under SECRET_KEY: ${current}, of them now: ${renewed}`,
    `Texts that still need SECRET_KEYS_PREVIOUS: ${previous}`,
    `Texts that no key opens: ${unknown}`,
  ]
}

interface RetryFailedOptions {
  readonly filter: JobFilter
  readonly limit: number
  readonly isDryRun: boolean
}

/** @throws UsageError */
function parseRetryFailed(args: readonly string[]): RetryFailedOptions {
  const { values, positionals } = parseOptions(args, {
    task: { type: 'string' },
    code: { type: 'string' },
    owner: { type: 'string' },
    since: { type: 'string' },
    limit: { type: 'string' },
    'dry-run': { type: 'boolean' },
  })
  const [queue, ...more] = positionals
  const { task, code, owner, since, limit } = values
  const time = since === undefined ? null : new Date(since)
  if (more.length > 0) throw new UsageError(USAGE)
  for (const [name, value] of Object.entries({ owner, limit }))
    if (value !== undefined && !/^[1-9]\d{0,8}$/.test(value))
      throw new UsageError(`--${name} must be a positive integer of at most 9 digits, not ${value}`)
  if (Number.isNaN(time?.getTime()))
    throw new UsageError(`--since must be a time such as 2026-03-14T15:00Z, not ${since}`)
  return {
    filter: {
      queue,
      task,
      code,
      owner_id: owner === undefined ? undefined : Number(owner),
      ended_from: time?.toISOString(),
    },
    limit: limit === undefined ? UNLIMITED_JOBS : Number(limit),
    isDryRun: values['dry-run'] === true,
  }
}

// Each batch commits separately, so an interrupted command keeps the retries of earlier ones.
const RETRY_BATCH_SIZE = 100
const PAGE_SIZE = 100_000
const PROGRESS_INTERVAL = 1000
const UNLIMITED_JOBS = 1_000_000_000

/** Retries the jobs that failed before the command started, so it never retries its own retries. */
async function retryFailed(
  db: Database,
  { filter, limit, isDryRun }: RetryFailedOptions,
  settings: AdminSettings,
  say: (line: string) => void,
): Promise<string[]> {
  const selection: JobSelection = { filter, states: ['failed'], before: null, unretried: true }
  const { count, now, oldest_end } = await db.one(countSelectedJobs(selection, limit))
  if (isDryRun) return [`Failed jobs that would be retried: ${count}`, ...formatExpiry(oldest_end, settings)]
  const failed: JobSelection = { ...selection, filter: { ...filter, ended_before: now } }
  let [seen, retried] = [0, 0]
  for (let lastId: string | null = null; seen < count; ) {
    const page: readonly { readonly id: string }[] = await db.any(
      listSelectedIds(failed, lastId, Math.min(PAGE_SIZE, count - seen)),
    )
    if (page.length === 0) break
    for (let start = 0; start < page.length; start += RETRY_BATCH_SIZE) {
      const ids = page.slice(start, start + RETRY_BATCH_SIZE).map(({ id }) => id)
      const retrier = { ownerId: null, isAdmin: true }
      const retriedIds = await retryJobs(db, ids, retrier, { findTask, requestId: null, settings })
      retried += retriedIds.length
      seen += ids.length
      if (seen % PROGRESS_INTERVAL === 0) say(`${seen} of ${count}`)
    }
    lastId = page.at(-1)!.id
  }
  const skipped = seen - retried
  if (skipped === 0) return [`Failed jobs retried: ${retried}`]
  const left = await db.one(countSelectedJobs(failed, limit))
  return [
    `Failed jobs retried: ${retried}`,
    `Failed jobs skipped: ${skipped}`,
    ...formatExpiry(left.oldest_end, settings),
  ]
}

/** Returns the line with the time until which the first of some failed jobs is kept; none if there is no job. */
function formatExpiry(
  oldestEnd: string | null,
  { jobRetention: [, failedSeconds] }: AdminSettings,
): string[] {
  if (oldestEnd === null) return []
  const time = new Date(Date.parse(oldestEnd) + failedSeconds * 1000).toISOString()
  return [`The first of them can be retried until ${time}`]
}

function auditCommand(kind: AuditKind, accountId: number, more: object = {}): Query<unknown> {
  const data = { by: 'command line', ...more }
  return appendAudit([{ kind, actorId: null, accountId, address: null, requestId: null, data }])
}
