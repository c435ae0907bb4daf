import { z } from 'zod'
import { lockDeletion, scheduleDeletion, unscheduleDeletion } from '../../../sql/accounts/deletions.ts'
import type { Transaction } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { deleteDueAccount } from '../../../tasks/accounts/delete.task.ts'
import { sendDeletionMail } from '../../../tasks/accounts/deletion-mail.task.ts'
import { enqueue } from '../../../tasks/task.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { type Answer, answerJson, type Input, route, type Writes } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { checkProof, isFailure, PROOF_DESCRIPTION, PROOF_ERRORS, proofFields } from './proof.ts'
import { User } from './shapes.ts'

const Deletion = z.strictObject(proofFields).meta({ id: 'AccountDeletion' }).optional()

/** Routes that request and cancel the deletion of the caller's own account. */
export const deletionRoutes = [
  route({
    method: 'delete',
    path: '/me',
    summary: 'Delete the account of the caller',
    description: `Deletes the account, its documents and its memberships after \`ACCOUNT_DELETION_DAYS\`, at \
\`deletion_at\`, which is also emailed. Until then everything works as before, and the deletion can be cancelled; \
repeating the request changes nothing. Running subscriptions are first cancelled at the payment provider; the rest is as \
when an admin deletes the account. ${PROOF_DESCRIPTION}`,
    body: Deletion,
    response: User,
    errors: ['account.last_admin', ...PROOF_ERRORS],
    hasCredentials: true,
    needsSession: true,
    handle: requestDeletion,
  }),

  route({
    method: 'post',
    path: '/me/restore',
    summary: "Cancel the deletion of the caller's account",
    description: 'Changes nothing if no deletion is pending.',
    response: User,
    errors: ['account.deletion_due', 'account.missing'],
    sideEffect: true,
    needsSession: true,
    handle: cancelDeletion,
  }),
]

type Account = z.input<typeof User>
type OwnInput<B> = Input<undefined, undefined, B, Caller> & Writes<Account>

async function requestDeletion(input: OwnInput<z.output<typeof Deletion>>): Promise<Answer<Account>> {
  const { body, caller, edge } = input
  const proof = await checkProof(input, body ?? {})
  return input.transaction(async (tx) => {
    const identity = await proof.confirm(tx)
    if (isFailure(identity)) return identity
    const deletion = await tx.one(lockDeletion(caller.id))
    if (deletion.marked) return answerJson(deletion.json)
    const marked = await tx.one(scheduleDeletion(caller.id, edge.settings.accountDeletionDays))
    const { deletion_at } = JSON.parse(marked.json) as Account
    const eventFields = { accountId: caller.id, data: { deletion_at } }
    await tx.run(appendAuditEvent(input, 'account.deletion_requested', eventFields))
    await enqueueDeletion(tx, input, marked.due)
    await edge.authenticator.invalidate(tx, caller.id)
    return answerJson(marked.json)
  })
}

async function cancelDeletion(input: OwnInput<undefined>): Promise<Answer<Account>> {
  const { caller, edge } = input
  return input.transaction(async (tx) => {
    const deletion = await tx.maybeOne(lockDeletion(caller.ownerId ?? 0))
    if (deletion === null) throw fail('account.missing')
    if (deletion.due) throw fail('account.deletion_due')
    if (!deletion.marked) return answerJson(deletion.json)
    const restored = await tx.one(unscheduleDeletion(caller.id))
    await tx.run(appendAuditEvent(input, 'account.deletion_cancelled', { accountId: caller.id }))
    await edge.authenticator.invalidate(tx, caller.id)
    return answerJson(restored.json)
  })
}

/**
 * Enqueues the deletion. If there is a grace period, enqueues only a notice, and the pruner starts the deletion later.
 */
async function enqueueDeletion(tx: Transaction, input: OwnInput<unknown>, isDue: boolean): Promise<void> {
  const { caller, edge, requestId } = input
  const options = { ownerId: null, requestId, settings: edge.settings }
  const payload = { account_id: caller.id }
  if (isDue) await enqueue(tx, deleteDueAccount, payload, options)
  else await enqueue(tx, sendDeletionMail, payload, options)
}
