import type { DeliveryResult } from '../../sql/webhooks/webhooks.ts'

export type WebhookResponse = Omit<DeliveryResult, 'at'>

/** An answer; with `limits`, `isWhole` is true if all of its body has arrived. */
export type PostedAnswer = WebhookResponse & { readonly isWhole?: boolean }

/** Posts a message to a webhook URL, unless the URL has a private address that is not allowed. Never rejects. */
export type PostWebhook = (
  request: {
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
    /** Text that the answer should contain, for which its body is awaited longer; null if any answer will do. */
    readonly echo: string | null
    /** Time for the whole answer, and bytes of its body, if the body matters; default: enough for a diagnosis. */
    readonly limits?: { readonly timeoutMs: number; readonly maxBytes: number }
  },
  signal: AbortSignal,
) => Promise<PostedAnswer>
