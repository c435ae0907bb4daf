import { endCredentials, lockFactors } from '../sql/accounts/credentials.ts'
import { unmarkForDeletion } from '../sql/accounts/deletions.ts'
import { accountChanged, upsertAdmin } from '../sql/accounts.ts'
import { type AuditKind, appendAudit } from '../sql/audit.ts'
import { StartError } from '../sql/start-error.ts'
import { passwordProblem } from './password-rules.ts'
import type { Edge } from './pipeline/context.ts'

/**
 * Ensures that the account of `ADMIN_EMAIL` is an active admin. If its address is unverified, anyone may have
 * registered it, so its password is replaced, and whatever else lets anybody sign in to it, act for it or hear of it ends.
 * @throws StartError when it would get a password that the rules forbid.
 */
export async function ensureAdmin(edge: Edge): Promise<void> {
  const { settings, passwords, db, log } = edge
  if (settings.adminEmail === undefined || settings.adminPassword === undefined) return
  const passwordHash = await passwords.hash(settings.adminPassword)
  const email = settings.adminEmail
  const problem = await passwordProblem(edge, settings.adminPassword, email)
  const admin = await db.transaction(async (tx) => {
    await tx.run(lockFactors(email))
    const row = await tx.maybeOne(upsertAdmin(email, passwordHash))
    if (row === null) return null
    if (row.change !== 'promoted' && problem !== null)
      throw new StartError(`ADMIN_PASSWORD: ${problem.detail}`)
    if (row.change === 'replaced') await tx.run(endCredentials(row.id))
    const kinds: AuditKind[] = [...KINDS[row.change]]
    if ((await tx.maybeOne(unmarkForDeletion(row.id))) !== null) kinds.push('account.deletion_cancelled')
    const data = { by: 'ADMIN_EMAIL', role: 'admin' }
    const about = { actorId: null, accountId: row.id, address: null, requestId: null, data }
    await tx.run(appendAudit(kinds.map((kind) => ({ kind, ...about }))))
    await tx.run(accountChanged(row.id))
    return row
  })
  if (admin === null) log.info('The account of ADMIN_EMAIL is an admin already')
  else log[admin.change === 'replaced' ? 'warn' : 'info']({ account: admin.id }, MESSAGES[admin.change])
}

const KINDS = {
  created: ['account.registered'],
  promoted: ['account.role_changed'],
  replaced: ['account.role_changed', 'account.password_reset', 'account.verified'],
} as const satisfies Record<string, readonly AuditKind[]>

const MESSAGES = {
  created: 'The account of ADMIN_EMAIL was created',
  promoted: 'The account of ADMIN_EMAIL was made an active admin; it keeps its password',
  replaced:
    'The account of ADMIN_EMAIL had not verified its address: it is now an admin with ADMIN_PASSWORD, and its sessions, keys, passkeys, one-time codes and webhook endpoints have ended',
} as const
