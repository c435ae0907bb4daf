import { idOf } from '../../../tasks/payments/reading.ts'

// States without a paid period that a cancellation could wait for.
const UNPAID_STATES: ReadonlySet<string> = new Set(['incomplete', 'past_due', 'unpaid', 'paused'])

/** Requests about one subscription. Each request with an effect takes its idempotency key. */
export interface CancellationRequests<S> {
  readonly cancelAtPeriodEnd: (key: string) => Promise<S>
  readonly find: () => Promise<{ readonly schedule: unknown; readonly status: string }>
  readonly releaseSchedule: (schedule: string, key: string) => Promise<unknown>
  readonly cancelNow: (key: string) => Promise<S>
}

/**
 * Cancels a subscription at the end of its paid period. A schedule that manages the subscription is released first. A
 * subscription without a paid period is canceled immediately if Stripe refuses to wait for its end.
 */
export async function cancelInAnyState<S>(requests: CancellationRequests<S>, key: string): Promise<S> {
  try {
    return await requests.cancelAtPeriodEnd(key)
  } catch (error) {
    const {
      type,
      statusCode,
      message = '',
    } = error as { readonly type?: string; readonly statusCode?: number; readonly message?: string }
    if (type !== 'StripeInvalidRequestError' || statusCode === 404) throw error
    const { schedule, status } = await requests.find()
    const scheduleId = idOf(schedule)
    if (scheduleId !== null) await requests.releaseSchedule(scheduleId, `${key}:release`)
    // An earlier attempt may have released it. Another key, because the provider repeats its refusal for the first one.
    if (scheduleId !== null || /schedule/i.test(message))
      return await requests.cancelAtPeriodEnd(`${key}:released`)
    if (!UNPAID_STATES.has(status)) throw error
    return await requests.cancelNow(`${key}:now`)
  }
}
