import { area } from '../../pipeline/route.ts'
import { deletionRoutes } from './deletion.ts'
import { emailRoutes } from './email.ts'
import { exportRoutes } from './exports.ts'
import { identityRoutes } from './identities.ts'
import { importRoute } from './import.ts'
import { acceptInviteRoute } from './invites.ts'
import { keyRoutes } from './keys.ts'
import { magicLinkRoutes } from './magic-link.ts'
import { oidcRoutes } from './oidc.ts'
import { passkeyRoutes } from './passkeys.ts'
import { quotaRoutes } from './quotas.ts'
import { recoveryRoutes } from './recovery.ts'
import { registerRoute } from './register.ts'
import { sessionRoutes } from './sessions.ts'
import { signInWaysRoute } from './sign-in-ways.ts'
import { totpRoutes } from './totp.ts'
import { userRoutes } from './users.ts'

export const accounts = area('accounts', '/api/v1/auth', { auth: 'user' }, [
  registerRoute,
  signInWaysRoute,
  ...sessionRoutes,
  ...keyRoutes,
  ...quotaRoutes,
  ...totpRoutes,
  ...passkeyRoutes,
  ...magicLinkRoutes,
  ...oidcRoutes,
  ...identityRoutes,
  ...recoveryRoutes,
  ...emailRoutes,
  ...deletionRoutes,
  ...exportRoutes,
  acceptInviteRoute,
  importRoute,
  ...userRoutes,
])
