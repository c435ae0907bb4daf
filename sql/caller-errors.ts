/** The errors of API keys and webhooks, in the table of `errors.ts`. */
export const callerErrors = {
  'auth.scope': { detail: 'The API key needs the scope {scope}' },
  'auth.session': { detail: 'An API key may not do this; sign in' },
  'auth.key_organization': {
    detail: 'The API key is limited to one organization: its routes, its webhooks, and its audit trail',
  },
  'webhook.missing': { detail: 'Webhook endpoint not found' },
  'webhook.not_yours': {
    detail: 'Only the account that added the endpoint may do this, or an admin of the service',
  },
  'webhook.delivery_missing': { detail: 'Delivery not found' },
  'webhook.callbacks': { detail: 'The endpoint of callbacks has no URL and no events of its own' },
  'webhook.no_account': { detail: 'Webhooks tell of what an account has, and the caller has none' },
  'key.missing': { detail: 'API key not found' },
  'key.no_account': { detail: 'Nobody signs in here (AUTH_LEVEL=none), so nobody needs an API key' },
} as const
