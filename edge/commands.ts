import { randomBytes } from 'node:crypto'
import { accountChanged, credentials, endSessions, setPassword, upsertAdmin } from '../sql/accounts.ts'
import { type AuditKind, appendAudit } from '../sql/audit.ts'
import type { Database, Query } from '../sql/db.ts'
import { Failure } from '../sql/errors.ts'
import { failedJobs } from '../sql/jobs/retry.ts'
import { unlockLogin } from '../sql/limits.ts'
import { createPublisher } from '../sql/notify.ts'
import { digestOf } from '../tasks/accounts/tokens.ts'
import { UsageError } from '../tasks/command.ts'
import { retryJob } from '../tasks/retry.ts'
import { createPasswords } from './passwords.ts'
import { Email } from './pipeline/schemas.ts'

export const USAGE = `Usage: npm run admin -- COMMAND
  create-admin EMAIL [--new-password]   makes the account an admin, and creates it if there is none
  unlock EMAIL                          lifts the lock that failed logins put on an address
  revoke-sessions EMAIL                 signs the account out everywhere
  retry-failed [QUEUE]                  retries every failed job, or only those of one queue`

/** Runs `npm run admin`; returns lines that report what was done. @throws UsageError */
export async function runAdmin(args: readonly string[], db: Database, maxTries: number): Promise<string[]> {
  const [command, ...rest] = args
  const flags = rest.filter((word) => word.startsWith('-'))
  const words = rest.filter((word) => !word.startsWith('-'))
  const [word, ...more] = words
  const known = command === 'create-admin' ? ['--new-password'] : []
  if (more.length > 0 || flags.some((flag) => !known.includes(flag))) throw new UsageError(USAGE)
  if (command === 'retry-failed') return retryFailed(db, word ?? null, maxTries)
  const email = Email.safeParse(word ?? '')
  if (!email.success) throw new UsageError(word === undefined ? USAGE : `${word} is not an email address`)
  switch (command) {
    case 'create-admin':
      return createAdmin(db, email.data, flags.length > 0)
    case 'unlock':
      return unlock(db, email.data)
    case 'revoke-sessions':
      return revokeSessions(db, email.data)
    default:
      throw new UsageError(USAGE)
  }
}

async function createAdmin(db: Database, email: string, newPassword: boolean): Promise<string[]> {
  const password = randomBytes(15).toString('base64url')
  const passwords = createPasswords()
  const passwordHash = await passwords.hash(password).finally(() => passwords.close())
  return db.transaction(async (tx) => {
    const row = await tx.maybeOne(upsertAdmin(email, passwordHash, true))
    const created = row?.change === 'created'
    const { id } = row ?? (await tx.one(credentials(email)))
    if (row !== null) await tx.run(told(created ? 'account.registered' : 'account.role_changed', id, 'admin'))
    if (newPassword && !created) {
      await tx.run(setPassword(id, passwordHash))
      await tx.run(endSessions(id, null))
      await tx.run(told('account.password_reset', id))
    }
    await tx.run(accountChanged(id))
    const now = row === null ? 'is an admin already' : created ? 'is a new admin' : 'is an admin now'
    if (newPassword || created) return [`${email} ${now}`, `Password: ${password}`]
    return [`${email} ${now}; its password is unchanged (--new-password sets a new one)`]
  })
}

async function unlock(db: Database, email: string): Promise<string[]> {
  const lifted = await db.run(unlockLogin(digestOf(email)))
  return [lifted > 0 ? `${email} is unlocked` : `${email} had no failed logins`]
}

async function revokeSessions(db: Database, email: string): Promise<string[]> {
  return db.transaction(async (tx) => {
    const account = await tx.maybeOne(credentials(email))
    if (account === null) throw new UsageError(`There is no account ${email}`)
    const ended = await tx.run(endSessions(account.id, null))
    if (ended > 0) await tx.run(told('session.ended', account.id))
    await tx.run(accountChanged(account.id))
    return [`Sessions of ${email} revoked: ${ended}`]
  })
}

// Failed jobs listed at a time. Each retry commits by itself, so an interrupted command loses nothing.
const BATCH = 100

async function retryFailed(db: Database, queue: string | null, maxTries: number): Promise<string[]> {
  const publisher = createPublisher(db, () => {})
  const left = new Set<string>()
  let retried = 0
  for (;;) {
    const jobs = await db.any(failedJobs({ queue, name: null }, BATCH + left.size))
    const due = jobs.filter(({ id }) => !left.has(id))
    if (due.length === 0) break
    for (const { id } of due) {
      const who = { ownerId: null, isAdmin: true }
      const again = await db
        .transaction((tx) => retryJob(tx, id, who, { requestId: null, maxTries }))
        .catch((error) => {
          // Skips a job that this version cannot run, or that has since changed or been removed.
          if (error instanceof Failure && error.code.startsWith('job.')) return null
          throw error
        })
      // A job whose retry joined one already under way remains in the list of failed jobs.
      left.add(id)
      if (again === null) continue
      publisher.notify(again)
      retried++
    }
  }
  await publisher.close()
  const skipped = left.size - retried
  return [`Failed jobs retried: ${retried}`, ...(skipped > 0 ? [`Failed jobs skipped: ${skipped}`] : [])]
}

function told(kind: AuditKind, accountId: number, role?: string): Query<unknown> {
  const data = { by: 'command line', ...(role === undefined ? {} : { role }) }
  return appendAudit([{ kind, actorId: null, accountId, address: null, requestId: null, data }])
}
