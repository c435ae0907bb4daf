import type { WebhookAnswer } from '../../sql/webhooks.ts'

/** What became of a request to a webhook's URL. */
export type WebhookPosted = Omit<WebhookAnswer, 'at'>

/** Posts a message to a URL of a caller, which may be anything that is no private address. Never rejects. */
export type PostWebhook = (
  request: {
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
  },
  signal: AbortSignal,
) => Promise<WebhookPosted>
