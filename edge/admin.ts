import { accountChanged, upsertAdmin } from '../sql/accounts.ts'
import { appendAudit } from '../sql/audit.ts'
import type { Edge } from './context.ts'

/** Creates or promotes the account that `ADMIN_EMAIL` names. */
export async function ensureAdmin({ settings, passwords, db, log }: Edge): Promise<void> {
  if (settings.adminEmail === undefined || settings.adminPassword === undefined) return
  const passwordHash = await passwords.hash(settings.adminPassword)
  const email = settings.adminEmail
  const admin = await db.transaction(async (tx) => {
    const row = await tx.maybeOne(upsertAdmin(email, passwordHash))
    if (row === null) return null
    const kind = row.created ? 'account.registered' : 'account.role_changed'
    const data = { by: 'ADMIN_EMAIL', role: 'admin' }
    await tx.run(
      appendAudit([{ kind, actorId: null, accountId: row.id, address: null, requestId: null, data }]),
    )
    await tx.run(accountChanged(row.id))
    return row
  })
  if (admin !== null) log.info({ account: admin.id, created: admin.created }, 'The admin account is in place')
}
