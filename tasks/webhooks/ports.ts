import type { DeliveryResult } from '../../sql/webhooks/webhooks.ts'

export type WebhookResponse = Omit<DeliveryResult, 'at'>

/** Posts a message to a webhook URL, unless the URL has a private address that is not allowed. Never rejects. */
export type PostWebhook = (
  request: {
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
    /** Text that the answer should contain, for which its body is awaited longer; null if any answer will do. */
    readonly echo: string | null
  },
  signal: AbortSignal,
) => Promise<WebhookResponse>
