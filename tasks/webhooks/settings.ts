import type { z } from 'zod'
import type { WebhookRates } from '../../sql/webhooks/webhooks.ts'
import { isCidrRange } from '../platform/addresses.ts'
import { countField, listField, rateField } from '../platform/settings/fields.ts'

export interface WebhookSettings {
  /** CIDR ranges of private addresses that webhooks may reach; any entry also permits http. */
  readonly allowed: readonly string[]
  readonly timeoutMs: number
  readonly rates: WebhookRates
  /** Delay before each retry, in ms. By default, retries continue for a day. */
  readonly retryMs: readonly number[]
}

// Allowed outside production, where developers run receivers on the same machine.
const LOOPBACK_RANGES = ['127.0.0.0/8', '::1/128']
// 5 s, 30 s, 2 min, 10 min, 30 min, 1 h, 2 h, 4 h, 8 h, 8 h: a day in total.
const RETRY_SECONDS = '5,30,120,600,1800,3600,7200,14400,28800,28800'

export const webhookShape = {
  WEBHOOK_ALLOW_ADDRESSES: listField()
    .refine((items) => items.every((item) => isCidrRange(item)), {
      error: 'must be a comma-separated list of ranges such as 10.1.0.0/16',
    })
    .optional(),
  WEBHOOK_TIMEOUT_SECONDS: countField(15, 1, 120),
  WEBHOOK_RATE: rateField({ max: 6000, seconds: 60 }, 6),
  WEBHOOK_UNPROVED_RATE: rateField({ max: 10, seconds: 60 }),
  WEBHOOK_RETRY_SECONDS: listField()
    .refine((items) => items.length > 0 && items.every((item) => /^\d{1,6}(\.\d{1,3})?$/.test(item)), {
      error: 'must be a comma-separated list of seconds such as 5,30,120',
    })
    .default(RETRY_SECONDS.split(',')),
}

type Env = z.output<z.ZodObject<typeof webhookShape>>

export const parseWebhookSettings = (env: Env, isProduction: boolean): WebhookSettings => ({
  allowed: env.WEBHOOK_ALLOW_ADDRESSES ?? (isProduction ? [] : LOOPBACK_RANGES),
  timeoutMs: env.WEBHOOK_TIMEOUT_SECONDS * 1000,
  rates: { verified: env.WEBHOOK_RATE, unverified: env.WEBHOOK_UNPROVED_RATE },
  retryMs: env.WEBHOOK_RETRY_SECONDS.map((seconds) => Math.round(Number(seconds) * 1000)),
})
