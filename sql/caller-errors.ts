/** Errors of credentials, API keys and webhooks: part of the table in `errors.ts`. */
export const callerErrors = {
  'auth.token_expired': { detail: 'The access token has expired' },
  'auth.token_invalid': { detail: 'The access token is invalid, or its session has ended' },
  'auth.key_invalid': { detail: 'The API key is unknown, expired or revoked' },
  'auth.scope': { detail: 'The API key lacks the scope {scope}' },
  'auth.session': { detail: 'API keys may not do this; sign in instead' },
  'auth.key_organization': {
    detail: 'This API key is limited to one organization: its routes, webhooks and audit trail',
  },
  'webhook.missing': { detail: 'Webhook endpoint not found' },
  'webhook.not_yours': {
    detail: 'Only the account that added the endpoint or a service admin may do this',
  },
  'webhook.delivery_missing': { detail: 'Delivery not found' },
  'webhook.callbacks': { detail: 'The callback endpoint has no URL or events of its own' },
  'webhook.no_account': { detail: 'Webhooks require a signed-in account' },
  'key.missing': { detail: 'API key not found' },
  'key.no_account': { detail: 'Authentication is disabled (AUTH_LEVEL=none), so API keys are not needed' },
} as const
