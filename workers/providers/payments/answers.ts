import type { ListSnapshot, ObjectSnapshot } from '../../../tasks/payments/provider.ts'
import type { ProviderObject } from '../../../tasks/payments/reading.ts'
import type { Stripe } from './client.ts'

/** Reads Stripe's answers: lists, missing objects, and the time of an answer. */

/** Converts the answer to a list request; null if the object whose list it is does not exist. */
export function toListSnapshot(
  page: (StripeResponse & { readonly data: readonly object[] }) | null,
): ListSnapshot {
  return page === null
    ? { objects: [], at: 0 }
    : { objects: castToProviderObjects(page.data), at: addProviderTime(page).at }
}

type Page = { readonly data: readonly { readonly id: string }[]; readonly has_more: boolean }

export async function* listPages(
  list: (after: { starting_after?: string }) => Promise<Page>,
): AsyncGenerator<readonly ProviderObject[]> {
  for (let last: string | undefined; ; ) {
    const page = await list(last === undefined ? {} : { starting_after: last })
    if (page.data.length > 0) yield castToProviderObjects(page.data)
    last = page.data.at(-1)?.id
    if (!page.has_more || last === undefined) return
  }
}

export function castToProviderObjects(given: readonly object[]): ProviderObject[] {
  return given as unknown as ProviderObject[]
}

type StripeResponse = object & { lastResponse?: { headers?: Record<string, string> } }

/**
 * True if Stripe repeated its stored answer to an earlier request with the same key. Such an answer has old state but a
 * new date, so it would overrule the events in between.
 */
export function isReplay({ lastResponse }: StripeResponse): boolean {
  return lastResponse?.headers?.['idempotent-replayed'] === 'true'
}

/** Adds the time of the provider's clock, which also dates the provider's events. */
export function addProviderTime(object: StripeResponse): ObjectSnapshot {
  const date = Date.parse(object.lastResponse?.headers?.date ?? '')
  const at = Math.floor((Number.isNaN(date) ? Date.now() : date) / 1000)
  return { object: object as unknown as ProviderObject, at }
}

export async function nullIfMissing<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode === 404) return null
    throw error
  }
}

/** Returns null if the error says that the customer does not exist; rethrows any other error. */
export function nullIfNoCustomer(error: Partial<Stripe.errors.StripeError>): null {
  if (error.code === 'resource_missing' && error.param === 'customer') return null
  throw error
}

/** Returns an empty page for a missing customer, and for substitutes for Stripe that lack the list. */
export function emptyIfMissing(error: Partial<Stripe.errors.StripeError>): Page {
  return error.statusCode === 404 ? { data: [], has_more: false } : emptyIfNoCustomer(error)
}

export function emptyIfNoCustomer(error: Partial<Stripe.errors.StripeError>): Page {
  return nullIfNoCustomer(error) ?? { data: [], has_more: false }
}
