import { createHash } from 'node:crypto'
import { findPayer } from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'

/** Runs `payments.address`. */
export async function run(
  { db, job, providers, signal }: TaskContext,
  { user_id }: { readonly user_id: number },
): Promise<{ updated: boolean }> {
  const payer = await db.maybeOne(findPayer(user_id))
  if (payer === null || payer.provider_customer_id === null) return { updated: false }
  const { email, full_name: name } = payer
  // The provider rejects a key that is reused with other values, which a later attempt may read.
  const digest = createHash('sha256')
    .update(JSON.stringify([email, name]))
    .digest('hex')
    .slice(0, 16)
  const call = { key: `${job.id}:address:${digest}`, signal }
  return {
    updated: await providers.payments.updateCustomer(payer.provider_customer_id, { email, name }, call),
  }
}
