import { z } from 'zod'
import type { Queries } from '../../sql/db.ts'
import type { Settings } from '../platform/settings/settings.ts'
import { defineTask, type EnqueueOptions, enqueue, loadLazily } from '../task.ts'
import { CALL_TRIES } from './provider.ts'

/** Copies the address and name of an account to its customer at the provider; does nothing without a customer. */
export const updateAddress = defineTask({
  name: 'payments.address',
  queue: 'payments',
  pool: 'io',
  // Runs after a checkout that creates the customer, which may have read the former address.
  actor: ({ user_id }) => `payment_payer:${user_id}`,
  links: ({ user_id }) => [{ kind: 'account', id: user_id }],
  payload: z.strictObject({ user_id: z.int() }),
  /** False if there is no customer. */
  result: z.strictObject({ updated: z.boolean() }),
  tries: CALL_TRIES,
  timeoutSeconds: 90,
  run: loadLazily(() => import('./address.work.ts')),
})

/** Enqueues the update after an account's address or name has changed; does nothing if payments are not configured. */
export async function enqueueAddressUpdate(
  tx: Queries,
  accountId: number,
  options: Omit<EnqueueOptions, 'ownerId'> & { readonly settings: Settings },
): Promise<void> {
  if (options.settings.payments.secretKey === undefined) return
  await enqueue(tx, updateAddress, { user_id: accountId }, { ...options, ownerId: null })
}
