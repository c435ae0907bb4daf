import { applyChanges } from '../../sql/payment-changes.ts'
import type { TaskContext } from '../context.ts'
import type { LookUp } from './changes.ts'
import type { Change } from './facts.ts'
import { linkToIntent } from './payment-id.ts'
import { refundChange } from './transactions.ts'

/** Runs `payments.look-up`. */
export async function run(
  { providers, signal, fenced }: TaskContext,
  { what, id }: LookUp,
): Promise<Record<string, never>> {
  const changes: Change[] = []
  if (what === 'invoice') {
    const intent = await providers.payments.findIntent('invoice', id, signal)
    if (intent !== null) changes.push(linkToIntent(id, intent))
  } else {
    const { objects, at } = await providers.payments.listRefunds({ charge: id }, signal)
    changes.push(...objects.flatMap((refund) => refundChange({ ...refund, charge: id }, at) ?? []))
  }
  if (changes.length > 0) await fenced((tx) => tx.run(applyChanges(changes)))
  return {}
}
