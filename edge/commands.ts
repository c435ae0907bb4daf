import { randomBytes } from 'node:crypto'
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { endCredentials, lockFactors } from '../sql/accounts/credentials.ts'
import { unmarkForDeletion } from '../sql/accounts/deletions.ts'
import { deleteTotp } from '../sql/accounts/totp.ts'
import {
  accountChanged,
  countAdmins,
  credentials,
  endSessions,
  insertAccount,
  recipientById,
  setPassword,
  upsertAdmin,
} from '../sql/accounts.ts'
import { type AuditKind, appendAudit } from '../sql/audit.ts'
import type { Database, Query } from '../sql/db.ts'
import { uuidv7 } from '../sql/ids.ts'
import { countMeant, idsMeant, type JobFilter, type Meant } from '../sql/jobs/search.ts'
import { unlockLogin } from '../sql/limits.ts'
import { createPublisher } from '../sql/notify.ts'
import { digestOf } from '../tasks/accounts/tokens.ts'
import { UsageError } from '../tasks/command.ts'
import { finderOf, tasks } from '../tasks/index.ts'
import { retryJobs } from '../tasks/retry.ts'
import type { JobSettings } from '../tasks/task.ts'
import { createPasswords } from './passwords.ts'
import { Email } from './pipeline/schemas.ts'

export const USAGE = `Usage: npm run admin -- COMMAND
  create-admin EMAIL [--new-password]   makes the account an admin, and creates it if there is none
  create-user EMAIL                     creates an account that is no admin
  unlock EMAIL                          lifts the lock that failed logins put on an address
  switch-off-totp EMAIL                 switches off the one-time codes of an account that has lost them
  revoke-sessions EMAIL                 signs the account out everywhere
  retry-failed [QUEUE]                  retries the jobs that have failed by now, or those of one queue
    [--task NAME] [--code ERROR_CODE] [--owner ACCOUNT_ID] [--since TIME] [--limit N] [--dry-run]`

/** Runs `npm run admin`; returns lines that report what was done; `say` gets progress. @throws UsageError */
export async function runAdmin(
  args: readonly string[],
  db: Database,
  settings: JobSettings,
  say: (line: string) => void = () => {},
): Promise<string[]> {
  const [command, ...rest] = args
  switch (command) {
    case 'create-admin': {
      const { values, positionals } = parsed(rest, { 'new-password': { type: 'boolean' } })
      return createAdmin(db, emailOf(positionals), values['new-password'] === true)
    }
    case 'create-user': {
      const email = emailOf(parsed(rest, {}).positionals)
      return [`${email} is a new user`, `Password: ${await createUser(db, email)}`]
    }
    case 'unlock':
      return unlock(db, emailOf(parsed(rest, {}).positionals))
    case 'switch-off-totp':
      return switchOffTotp(db, emailOf(parsed(rest, {}).positionals))
    case 'revoke-sessions':
      return revokeSessions(db, emailOf(parsed(rest, {}).positionals))
    case 'retry-failed':
      return retryFailed(db, retryFailedOf(rest), settings, say)
    default:
      throw new UsageError(USAGE)
  }
}

/** @throws UsageError for an option that the command does not have. */
function parsed<const T extends ParseArgsOptionsConfig>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch {
    throw new UsageError(USAGE)
  }
}

function emailOf([word, ...more]: readonly string[]): string {
  if (word === undefined || more.length > 0) throw new UsageError(USAGE)
  const email = Email.safeParse(word)
  if (!email.success) throw new UsageError(`${word} is not an email address`)
  return email.data
}

async function createAdmin(db: Database, email: string, newPassword: boolean): Promise<string[]> {
  const { password, passwordHash } = await choosePassword()
  return db.transaction(async (tx) => {
    await tx.run(lockFactors(email))
    const row = await tx.maybeOne(upsertAdmin(email, passwordHash, true))
    const created = row?.change === 'created'
    const { id } = row ?? (await tx.one(credentials(email)))
    if (row !== null)
      await tx.run(audited(created ? 'account.registered' : 'account.role_changed', id, 'admin'))
    if (row !== null && (await tx.maybeOne(unmarkForDeletion(id))) !== null)
      await tx.run(audited('account.deletion_cancelled', id))
    if (newPassword && !created) {
      await tx.run(setPassword(id, passwordHash))
      // An address that nobody has verified may have been registered by somebody else than the new admin.
      const { is_verified: isVerified } = await tx.one(recipientById(id))
      await tx.run(isVerified ? endSessions(id, null) : endCredentials(id))
      await tx.run(audited('account.password_reset', id))
    }
    await tx.run(accountChanged(id))
    const now = row === null ? 'is an admin already' : created ? 'is a new admin' : 'is an admin now'
    const { admins } = await tx.one(countAdmins())
    const inAll = admins === 1 ? 'It is the only active admin' : `There are ${admins} active admins`
    if (newPassword || created) return [`${email} ${now}`, `Password: ${password}`, inAll]
    return [`${email} ${now}; its password is unchanged (--new-password sets a new one)`, inAll]
  })
}

async function choosePassword(): Promise<{ password: string; passwordHash: string }> {
  const password = randomBytes(15).toString('base64url')
  const passwords = createPasswords()
  return { password, passwordHash: await passwords.hash(password).finally(() => passwords.close()) }
}

/** Creates an account that is no admin, also while there is none; its password. @throws account.email_taken */
export async function createUser(db: Database, email: string): Promise<string> {
  const { password, passwordHash } = await choosePassword()
  await db.transaction(async (tx) => {
    const account = { email, passwordHash, fullName: null, role: 'user', isActive: true } as const
    const { id } = await tx.one(insertAccount(account))
    await tx.run(audited('account.registered', id))
  })
  return password
}

async function unlock(db: Database, email: string): Promise<string[]> {
  const lifted = await db.run(unlockLogin(digestOf(email)))
  return [lifted > 0 ? `${email} is unlocked` : `${email} had no failed logins`]
}

async function switchOffTotp(db: Database, email: string): Promise<string[]> {
  return db.transaction(async (tx) => {
    const account = await tx.maybeOne(credentials(email))
    if (account === null) throw new UsageError(`There is no account ${email}`)
    if ((await tx.maybeOne(deleteTotp(account.id))) === null) return [`${email} has no one-time codes`]
    await tx.run(audited('account.totp_disabled', account.id))
    await tx.run(accountChanged(account.id))
    return [`${email} signs in without one-time codes now`]
  })
}

async function revokeSessions(db: Database, email: string): Promise<string[]> {
  return db.transaction(async (tx) => {
    const account = await tx.maybeOne(credentials(email))
    if (account === null) throw new UsageError(`There is no account ${email}`)
    const ended = await tx.run(endSessions(account.id, null))
    if (ended > 0) await tx.run(audited('session.ended', account.id))
    await tx.run(accountChanged(account.id))
    return [`Sessions of ${email} revoked: ${ended}`]
  })
}

interface RetryFailed {
  readonly filter: JobFilter
  readonly limit: number
  readonly isDryRun: boolean
}

/** @throws UsageError */
function retryFailedOf(args: readonly string[]): RetryFailed {
  const { values, positionals } = parsed(args, {
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
      throw new UsageError(`--${name} needs a whole number from 1 on, not ${value}`)
  if (Number.isNaN(time?.getTime()))
    throw new UsageError(`--since needs a time like 2026-03-14T15:00Z, not ${since}`)
  return {
    filter: {
      queue,
      task,
      code,
      owner_id: owner === undefined ? undefined : Number(owner),
      ended_from: time?.toISOString(),
    },
    limit: limit === undefined ? MAX_RETRIED : Number(limit),
    isDryRun: values['dry-run'] === true,
  }
}

const taskNamed = finderOf(tasks)

// Each retry commits by itself, so an interrupted command loses nothing.
const BATCH = 100
const LISTED = 100_000
const TELL_EVERY = 1000
const MAX_RETRIED = 1_000_000_000

/** Retries what has failed by now: a retry that fails while this runs is not retried again. */
async function retryFailed(
  db: Database,
  { filter, limit, isDryRun }: RetryFailed,
  settings: JobSettings,
  say: (line: string) => void,
): Promise<string[]> {
  const which: Meant = { filter, states: ['failed'], before: uuidv7(), unretried: true }
  const { count, now } = await db.one(countMeant(which, limit))
  if (isDryRun) return [`Failed jobs that would be retried: ${count}`]
  const failed: Meant = { ...which, filter: { ...filter, ended_before: now } }
  const publisher = createPublisher(db, () => {})
  let [seen, retried] = [0, 0]
  for (let last: string | null = null; seen < count; ) {
    const some: readonly { readonly id: string }[] = await db.any(
      idsMeant(failed, last, Math.min(LISTED, count - seen)),
    )
    if (some.length === 0) break
    for (let start = 0; start < some.length; start += BATCH) {
      const ids = some.slice(start, start + BATCH).map(({ id }) => id)
      const again = await retryJobs(db, ids, { taskNamed, requestId: null, settings })
      for (const id of again) publisher.notify(id)
      retried += again.length
      seen += ids.length
      if (seen % TELL_EVERY === 0) say(`${seen} of ${count}`)
    }
    last = some.at(-1)!.id
  }
  await publisher.close()
  const skipped = seen - retried
  return [`Failed jobs retried: ${retried}`, ...(skipped > 0 ? [`Failed jobs skipped: ${skipped}`] : [])]
}

function audited(kind: AuditKind, accountId: number, role?: string): Query<unknown> {
  const data = { by: 'command line', ...(role === undefined ? {} : { role }) }
  return appendAudit([{ kind, actorId: null, accountId, address: null, requestId: null, data }])
}
