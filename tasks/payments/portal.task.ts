import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { PortalSession } from './shapes.ts'

/** Opens the provider's page on which a customer manages payment methods, invoices and subscriptions. */
export const openPortal = defineTask({
  name: 'payments.portal',
  queue: 'payments',
  pool: 'io',
  links: ({ user_id }) => [{ kind: 'account', id: user_id }],
  // Anyone with this URL acts as the customer.
  secrets: ['portal_url'],
  payload: z.strictObject({ user_id: z.int(), return_url: z.string() }),
  result: PortalSession,
  timeoutSeconds: 90,
  run: loadLazily(() => import('./portal.work.ts')),
})
