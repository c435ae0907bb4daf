import type { z } from 'zod'
import type { TaskContext } from '../context.ts'
import { idOf, integerOf, objectOf, type ProviderObject, textOf } from './reading.ts'
import type { Catalog, Price } from './shapes.ts'

/** Runs `payments.catalog`. */
export async function run({ providers, signal }: TaskContext): Promise<Catalog> {
  return {
    prices: (await providers.payments.listPrices(signal)).flatMap((price) => priceOf(price) ?? []),
  }
}

function priceOf(price: ProviderObject): z.output<typeof Price> | null {
  const id = idOf(price.id)
  const currency = textOf(price.currency)
  const product = objectOf(price.product)
  // Skip prices of deleted and inactive products, because the provider does not deactivate these prices.
  if (id === null || currency === null || product.deleted === true || product.active === false) return null
  const recurring = price.recurring === null ? null : objectOf(price.recurring)
  const interval = textOf(recurring?.interval)
  return {
    price_id: id,
    product_id: idOf(price.product) ?? '',
    name: textOf(product.name) ?? textOf(price.nickname) ?? id,
    description: textOf(product.description),
    amount: integerOf(price.unit_amount),
    currency: currency.toLowerCase(),
    mode: interval === null ? 'payment' : 'subscription',
    interval,
    interval_count: interval === null ? null : (integerOf(recurring?.interval_count) ?? 1),
  }
}
