import type { WebhookAnswer } from '../../sql/webhooks.ts'

/** The result of a request to a webhook's URL. */
export type WebhookResponse = Omit<WebhookAnswer, 'at'>

/** Posts a message to a caller's URL, unless it is a private address that is not allowed. Never rejects. */
export type PostWebhook = (
  request: {
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
  },
  signal: AbortSignal,
) => Promise<WebhookResponse>
