// Webhook endpoints of an organization.

import { endpointList, ROUTE } from '../account/webhooks.js'

export const organizationWebhooks = ({ account, org }) =>
  endpointList({
    title: 'Webhooks',
    name: 'webhooks',
    path: `${ROUTE}?organization_id=${org.id}`,
    note: 'An endpoint receives the events of the member who adds it. Owners and admins can disable and delete it.',
    empty: 'The organization has no webhook endpoints.',
    fixed: { organization_id: org.id },
    account,
    kind: 'plain',
  })
