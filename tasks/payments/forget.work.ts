import { appendAudit } from '../../sql/audit/audit.ts'
import type { TaskContext } from '../context.ts'

/** Runs `payments.forget`. */
export async function run(
  { job, providers, runFenced, signal }: TaskContext,
  {
    account_id,
    provider_customer_id,
  }: { readonly account_id: number; readonly provider_customer_id: string },
): Promise<Record<string, never>> {
  await providers.payments.clearCustomer(provider_customer_id, { key: `${job.id}:forget`, signal })
  const about = { actorId: null, accountId: account_id, address: null, requestId: job.requestId }
  const event = { ...about, kind: 'payment.customer_cleared', data: { provider_customer_id } } as const
  await runFenced((tx) => tx.run(appendAudit([event])))
  return {}
}
