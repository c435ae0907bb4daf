import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

export const NOTICES = [
  'key_created',
  'passkey_added',
  'passkey_deleted',
  'identity_linked',
  'identity_unlinked',
  'totp_disabled',
] as const

/** Emails an account about a change of its credentials. */
export const sendNoticeMail = defineTask({
  name: 'accounts.notice',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({
    account_id: z.int(),
    what: z.enum(NOTICES),
    /** The name of the API key or passkey. */
    name: z.string().optional(),
  }),
  result: z.strictObject({}),
  links: ({ account_id }) => [{ kind: 'account', id: account_id }],
  tries: 8,
  timeoutSeconds: 60,
  run: loadLazily(() => import('./notice.work.ts')),
})
