/** Errors of webhooks: part of the table in `errors.ts`. */
export const webhookErrors = {
  'webhook.missing': { detail: 'Webhook endpoint not found' },
  'webhook.not_yours': {
    detail: 'Only the account that added the endpoint or a service admin may do this',
  },
  'webhook.delivery_missing': { detail: 'Delivery not found' },
  'webhook.callbacks': { detail: 'The callback endpoint has no URL or events of its own' },
  'webhook.no_account': { detail: 'Webhooks require a signed-in account' },
} as const
