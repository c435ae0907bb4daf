// API keys of an organization.

import { keyList, ROUTE } from '../account/keys.js'

// A key of an organization reaches only these areas.
const SCOPES = ['organizations:read', 'organizations:write', 'webhooks:read', 'webhooks:write', 'worker-queues:read', 'worker-queues:write', 'worker-queues:work', 'accounts:read']

export const organizationKeys = ({ org }) =>
  keyList({
    name: 'keys',
    path: `${ROUTE}?organization_id=${org.id}`,
    note: 'A key of the organization reaches only its members, invites, webhooks, worker queues and audit trail. It ends when its creator leaves.',
    empty: 'The organization has no API keys.',
    fixed: { organization_id: org.id },
    scopes: SCOPES,
    kind: 'plain',
  })
