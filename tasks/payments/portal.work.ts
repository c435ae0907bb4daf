import { fail } from '../../sql/errors.ts'
import { findCustomerByAccount } from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'
import type { PortalSession } from './shapes.ts'

/** Runs `payments.portal`. */
export async function run(
  { db, job, providers, signal }: TaskContext,
  { user_id, return_url }: { readonly user_id: number; readonly return_url: string },
): Promise<PortalSession> {
  const known = await db.maybeOne(findCustomerByAccount(user_id))
  if (known === null) throw fail('payment.customer_missing')
  const url = await providers.payments.createPortal(
    { customer: known.provider_customer_id, returnUrl: return_url },
    { key: `${job.id}:portal`, signal },
  )
  // The customer was deleted at the provider. The next checkout creates another one.
  if (url === null) throw fail('payment.customer_missing')
  return { portal_url: url, provider_key: 'stripe' as const }
}
