import { applyChanges } from '../../sql/payments/changes.ts'
import type { TaskContext } from '../context.ts'
import type { LookUpRequest } from './changes.ts'
import type { Change } from './facts.ts'
import { createIntentLink } from './payment-id.ts'
import { toRefundChange } from './transactions.ts'

/** Runs `payments.look-up`. */
export async function run(
  { providers, signal, runFenced }: TaskContext,
  { what, id }: LookUpRequest,
): Promise<Record<string, never>> {
  const changes: Change[] = []
  if (what === 'invoice') {
    const intent = await providers.payments.findIntent('invoice', id, signal)
    if (intent !== null) changes.push(createIntentLink(id, intent))
  } else {
    const { objects, at } = await providers.payments.listRefunds({ charge: id }, signal)
    changes.push(...objects.flatMap((refund) => toRefundChange({ ...refund, charge: id }, at) ?? []))
  }
  if (changes.length > 0) await runFenced((tx) => tx.run(applyChanges(changes)))
  return {}
}
