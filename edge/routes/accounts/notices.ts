import type { Transaction } from '../../../sql/db.ts'
import { type NOTICES, sendNoticeMail } from '../../../tasks/accounts/notice.task.ts'
import { enqueue } from '../../../tasks/task.ts'
import type { Edge } from '../../pipeline/context.ts'

/** Enqueues an email that notifies the account of a changed credential. Call it in the transaction of the change. */
export async function enqueueNotice(
  tx: Transaction,
  { edge, requestId }: { readonly edge: Edge; readonly requestId: string },
  accountId: number,
  kind: (typeof NOTICES)[number],
  name?: string,
): Promise<void> {
  const payload = { account_id: accountId, what: kind, ...(name === undefined ? {} : { name }) }
  const options = { ownerId: null, requestId, settings: edge.settings }
  await enqueue(tx, sendNoticeMail, payload, options)
}
