import type { Settings } from '../../../tasks/platform/settings/settings.ts'

/** Rights that a restricted key of Stripe needs, each with a read that needs it: https://docs.stripe.com/keys */
const RIGHTS = {
  Customers: 'customers',
  'Checkout Sessions': 'checkout/sessions',
  'Charges and Refunds': 'refunds',
  Subscriptions: 'subscriptions',
  'Subscription Schedules': 'subscription_schedules',
  Invoices: 'invoice_payments',
  Prices: 'prices',
  Events: 'events',
  'Customer portal': 'billing_portal/configurations',
}

const TIMEOUT_MS = 10_000

/**
 * Returns the names of the rights that the key of the payment provider lacks, as its dashboard shows them. Only reads
 * are tried, so a key that may read but not write seems to have the right.
 *
 * @throws if the provider does not answer, or answers with 401 or 5xx.
 */
export async function listMissingRights({
  secretKey,
  apiBaseUrl,
}: Pick<Settings['payments'], 'secretKey' | 'apiBaseUrl'>): Promise<string[]> {
  const missing = await Promise.all(
    Object.entries(RIGHTS).map(async ([right, path]) => {
      const response = await fetch(`${apiBaseUrl}/v1/${path}?limit=1`, {
        headers: { authorization: `Bearer ${secretKey}` },
        redirect: 'manual',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      await response.body?.cancel()
      if (response.status === 401 || response.status >= 500)
        throw new Error(`the read of ${path} has status ${response.status}`)
      return response.status === 403 ? [right] : []
    }),
  )
  return missing.flat()
}
