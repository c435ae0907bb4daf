/** Errors of API keys: part of the table in `errors.ts`. */
export const keyErrors = {
  'auth.key_invalid': { detail: 'The API key is unknown, expired or revoked' },
  'auth.scope': { detail: 'The API key lacks the scope {scope}' },
  'auth.session': { detail: 'API keys may not do this; sign in instead' },
  'auth.key_organization': {
    detail:
      'This API key is limited to one organization: its routes, webhooks, worker queues and audit trail',
  },
  'key.missing': { detail: 'API key not found' },
  'key.no_account': { detail: 'Authentication is disabled (AUTH_LEVEL=none), so API keys are not needed' },
} as const
