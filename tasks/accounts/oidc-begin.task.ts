import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/** Builds the URL of the issuer's sign-in page. */
export const beginOidc = defineTask({
  name: 'accounts.oidc-begin',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ state: z.string(), redirect_uri: z.string() }),
  result: z.strictObject({ authorization_url: z.string(), state: z.string() }),
  secrets: ['authorization_url'],
  tries: 1,
  timeoutSeconds: 60,
  run: loadLazily(() => import('./oidc-begin.work.ts')),
})
