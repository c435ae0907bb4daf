import { area } from '../../pipeline/route.ts'
import { inviteRoutes } from './invites.ts'
import { memberRoutes } from './members.ts'
import { organizationRoutes } from './organizations.ts'

export const organizations = area('organizations', '/api/v1/orgs', { auth: 'user' }, [
  ...organizationRoutes,
  ...memberRoutes,
  ...inviteRoutes,
])
