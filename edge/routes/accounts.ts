import { area } from '../pipeline/route.ts'
import { deletionRoutes } from './accounts/deletion.ts'
import { emailRoutes } from './accounts/email.ts'
import { exportRoutes } from './accounts/exports.ts'
import { importRoute } from './accounts/import.ts'
import { acceptInviteRoute } from './accounts/invites.ts'
import { keyRoutes } from './accounts/keys.ts'
import { passkeyRoutes } from './accounts/passkeys.ts'
import { quotaRoutes } from './accounts/quotas.ts'
import { recoveryRoutes } from './accounts/recovery.ts'
import { registerRoute } from './accounts/register.ts'
import { sessionRoutes } from './accounts/sessions.ts'
import { totpRoutes } from './accounts/totp.ts'
import { userRoutes } from './accounts/users.ts'

export const accounts = area('accounts', '/api/v1/auth', { auth: 'user' }, [
  registerRoute,
  ...sessionRoutes,
  ...keyRoutes,
  ...quotaRoutes,
  ...totpRoutes,
  ...passkeyRoutes,
  ...recoveryRoutes,
  ...emailRoutes,
  ...deletionRoutes,
  ...exportRoutes,
  acceptInviteRoute,
  importRoute,
  ...userRoutes,
])
