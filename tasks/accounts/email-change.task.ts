import { z } from 'zod'
import { ADDRESS_SIDES } from '../../sql/accounts/email-changes.ts'
import { defineTask, loadLazily } from '../task.ts'
import { linkFields } from './links.ts'

/**
 * Emails one of the two addresses of a change a link to confirm the change. Sends nothing if that address has already
 * confirmed, or the change is no longer pending.
 */
export const sendEmailChangeMail = defineTask({
  name: 'accounts.email-change',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({
    account_id: z.int(),
    change_id: z.uuid(),
    side: z.enum(ADDRESS_SIDES),
    ...linkFields,
  }),
  result: z.strictObject({}),
  links: ({ account_id }) => [{ kind: 'account', id: account_id }],
  tries: 8,
  timeoutSeconds: 60,
  run: loadLazily(() => import('./email-change.work.ts')),
})
