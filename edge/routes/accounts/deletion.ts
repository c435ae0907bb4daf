import { z } from 'zod'
import { lockStanding, markForDeletion, unmarkForDeletion } from '../../../sql/accounts/deletions.ts'
import type { Transaction } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { deleteDue } from '../../../tasks/accounts/delete.ts'
import { deletionMail } from '../../../tasks/accounts/deletion-mail.ts'
import { enqueue } from '../../../tasks/task.ts'
import { audit } from '../../pipeline/audit.ts'
import type { Caller } from '../../pipeline/auth.ts'
import { type Answer, type Input, json, route, type Writes } from '../../pipeline/route.ts'
import { isRefused, PROOF_ERRORS, PROOF_REQUIRED, proofFields, proofOf } from './proof.ts'
import { User } from './shapes.ts'

const Deletion = z.strictObject(proofFields).meta({ id: 'AccountDeletion' }).optional()

/** Deletion of the caller's own account, and its cancellation. */
export const deletionRoutes = [
  route({
    method: 'delete',
    path: '/me',
    summary: 'Delete the account of the caller',
    description: `Deletes the account, its documents and its memberships after \`ACCOUNT_DELETION_DAYS\`, at \
\`deletion_at\`, which is also emailed. Until then everything works as before, and the deletion can be cancelled; \
repeating the request changes nothing. Running subscriptions are first cancelled at the payment provider; the rest is as \
when an admin deletes the account. ${PROOF_REQUIRED}`,
    body: Deletion,
    response: User,
    errors: ['account.last_admin', ...PROOF_ERRORS],
    credentials: true,
    needsSession: true,
    handle: deleteOwn,
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
    handle: restoreOwn,
  }),
]

type Account = z.input<typeof User>
type Own<B> = Input<undefined, undefined, B, Caller> & Writes<Account>

async function deleteOwn(input: Own<z.output<typeof Deletion>>): Promise<Answer<Account>> {
  const { body, caller, edge } = input
  const proof = await proofOf(input, body ?? {})
  return input.transaction(async (tx) => {
    const proven = await proof.settle(tx)
    if (isRefused(proven)) return proven
    const standing = await tx.one(lockStanding(caller.id))
    if (standing.marked) return json(standing.json)
    const marked = await tx.one(markForDeletion(caller.id, edge.settings.accountDeletionDays))
    const { deletion_at } = JSON.parse(marked.json) as Account
    const about = { accountId: caller.id, data: { deletion_at } }
    await tx.run(audit(input, 'account.deletion_requested', about))
    await enqueueNext(tx, input, marked.due)
    await edge.accounts.changed(tx, caller.id)
    return json(marked.json)
  })
}

async function restoreOwn(input: Own<undefined>): Promise<Answer<Account>> {
  const { caller, edge } = input
  return input.transaction(async (tx) => {
    const standing = await tx.maybeOne(lockStanding(caller.ownerId ?? 0))
    if (standing === null) throw fail('account.missing')
    if (standing.due) throw fail('account.deletion_due')
    if (!standing.marked) return json(standing.json)
    const restored = await tx.one(unmarkForDeletion(caller.id))
    await tx.run(audit(input, 'account.deletion_cancelled', { accountId: caller.id }))
    await edge.accounts.changed(tx, caller.id)
    return json(restored.json)
  })
}

/** Enqueues the deletion if it is due now. After a grace period the pruner starts it, so only its notice is enqueued. */
async function enqueueNext(tx: Transaction, input: Own<unknown>, isDue: boolean): Promise<void> {
  const { caller, edge, requestId } = input
  const options = { ownerId: null, requestId, settings: edge.settings }
  const about = { account_id: caller.id }
  const { jobId } = isDue
    ? await enqueue(tx, deleteDue, about, options)
    : await enqueue(tx, deletionMail, about, options)
  tx.afterCommit(() => edge.publisher.notify(jobId))
}
