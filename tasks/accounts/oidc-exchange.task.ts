import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/**
 * Exchanges the issuer's code for the claims of a person, and stores them for the sign-in. The issuer takes a code
 * once, so a second attempt would fail.
 */
export const exchangeOidc = defineTask({
  name: 'accounts.oidc-exchange',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({
    state: z.string(),
    redirect_uri: z.string(),
    parameters: z.string(),
    /** Digest, in hexadecimal, of the values that the browser sends to sign in. */
    login_digest: z.string(),
  }),
  result: z.strictObject({ status: z.literal('ready') }),
  secrets: ['parameters'],
  tries: 1,
  timeoutSeconds: 60,
  run: loadLazily(() => import('./oidc-exchange.work.ts')),
})
