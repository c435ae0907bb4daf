import { area } from '../pipeline/route.ts'
import { inviteRoutes } from './orgs/invites.ts'
import { memberRoutes } from './orgs/members.ts'
import { organizationRoutes } from './orgs/organizations.ts'

export const organizations = area('organizations', '/api/v1/orgs', { auth: 'user' }, [
  ...organizationRoutes,
  ...memberRoutes,
  ...inviteRoutes,
])
