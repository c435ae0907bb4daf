import { applyChanges } from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'
import type { LookUpRequest } from './changes.ts'
import type { Change } from './facts.ts'
import { linkInvoice } from './payment-id.ts'
import type { PaymentProvider } from './provider.ts'
import { toReportedRefund } from './refunds.ts'
import { toSubscriptionChange } from './subscriptions.ts'

/** Runs `payments.look-up`. */
export async function run(
  { providers, signal, runFenced }: TaskContext,
  { what, id }: LookUpRequest,
): Promise<Record<string, never>> {
  const changes = await LOOK_UPS[what](providers.payments, id, signal)
  if (changes.length > 0) await runFenced((tx) => tx.run(applyChanges(changes)))
  return {}
}

type LookUp = (provider: PaymentProvider, id: string, signal: AbortSignal) => Promise<readonly Change[]>

const LOOK_UPS: Readonly<Record<LookUpRequest['what'], LookUp>> = {
  invoice: async (provider, id, signal) => [(await linkInvoice(provider, id, signal)).change],
  charge: async (provider, id, signal) => {
    const { objects, at } = await provider.listRefunds({ charge: id }, signal)
    return objects.flatMap((refund) => toReportedRefund({ ...refund, charge: id }, at) ?? [])
  },
  subscription: async (provider, id, signal) => {
    const found = await provider.findSubscription(id, signal)
    const change = found === null ? null : toSubscriptionChange(found.object, 'read', found.at)
    return change === null ? [] : [change]
  },
}
