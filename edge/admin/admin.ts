import { notifyAccountChanged, upsertAdmin } from '../../sql/accounts/accounts.ts'
import { lockFactors, revokeCredentials } from '../../sql/accounts/credentials.ts'
import { unscheduleDeletion } from '../../sql/accounts/deletions.ts'
import { type AuditKind, appendAudit } from '../../sql/audit/audit.ts'
import { StartError } from '../../sql/server/start-error.ts'
import { findPasswordProblem } from '../passwords/rules.ts'
import type { Edge } from '../pipeline/context.ts'

/**
 * Creates the account of `ADMIN_EMAIL`, or makes it an active admin. An unverified account may belong to a stranger.
 * Such an account gets `ADMIN_PASSWORD` and loses its sessions, keys, factors and webhook endpoints.
 * @throws StartError if the rules forbid a password to set.
 */
export async function ensureAdmin(edge: Edge): Promise<void> {
  const { settings, passwords, db, log } = edge
  if (settings.adminEmail === undefined || settings.adminPassword === undefined) return
  const passwordHash = await passwords.hash(settings.adminPassword)
  const email = settings.adminEmail
  const problem = await findPasswordProblem(edge, settings.adminPassword, email)
  const admin = await db.transaction(async (tx) => {
    await tx.run(lockFactors(email))
    const row = await tx.maybeOne(upsertAdmin(email, passwordHash))
    if (row === null) return null
    if (row.change !== 'promoted' && problem !== null)
      throw new StartError(`ADMIN_PASSWORD: ${problem.detail}`)
    if (row.change === 'replaced') await tx.run(revokeCredentials(row.id))
    const kinds: AuditKind[] = [...AUDIT_KINDS[row.change]]
    if ((await tx.maybeOne(unscheduleDeletion(row.id))) !== null) kinds.push('account.deletion_cancelled')
    const role = row.former_role === null ? { role: 'admin' } : { from: row.former_role, to: 'admin' }
    const data = { by: 'ADMIN_EMAIL', ...role }
    const details = { actorId: null, accountId: row.id, address: null, requestId: null, data }
    await tx.run(appendAudit(kinds.map((kind) => ({ kind, ...details }))))
    await tx.run(notifyAccountChanged(row.id))
    return row
  })
  if (admin === null) log.info('The account of ADMIN_EMAIL is already an admin')
  else log[admin.change === 'replaced' ? 'warn' : 'info']({ account: admin.id }, LOG_MESSAGES[admin.change])
}

const AUDIT_KINDS = {
  created: ['account.registered'],
  promoted: ['account.role_changed'],
  replaced: ['account.role_changed', 'account.password_reset', 'account.verified'],
} as const satisfies Record<string, readonly AuditKind[]>

const LOG_MESSAGES = {
  created: 'Created the account of ADMIN_EMAIL',
  promoted: 'Made the account of ADMIN_EMAIL an active admin; its password is unchanged',
  replaced:
    'The account of ADMIN_EMAIL was unverified: it is now an admin with ADMIN_PASSWORD; its sessions, keys, passkeys, one-time codes and webhook endpoints were revoked',
} as const
