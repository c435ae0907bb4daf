import { z } from 'zod'
import { listPrices } from '../../../tasks/payments/catalog.task.ts'
import { openCheckout } from '../../../tasks/payments/checkout.task.ts'
import { isRedirectTarget } from '../../../tasks/payments/settings.ts'
import { Catalog, CheckoutSession } from '../../../tasks/payments/shapes.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { enqueue } from '../../../tasks/task.ts'
import { route } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { PROVIDER_ERRORS, requireFirstSubscription, requireProvider } from './shapes.ts'

const Redirect = z
  .string()
  .refine(isRedirectTarget, 'must be an absolute http(s) URL, or a path that begins with /')

const Checkout = z
  .strictObject({
    price_id: z.string().trim().min(1).max(255),
    quantity: z.int().min(1).max(999_999).default(1),
    mode: z.enum(['payment', 'subscription']),
    success_url: Redirect.optional(),
    cancel_url: Redirect.optional(),
    allow_second: z.boolean().default(false),
  })
  .meta({ id: 'Checkout' })

/** Routes for the price catalog and for checkout sessions. */
export const checkoutRoutes = [
  route({
    method: 'post',
    path: '/checkout',
    summary: 'Create a checkout session',
    description: `The caller pays on a page of the payment provider, which then redirects to \`success_url\` or \
\`cancel_url\`. They default to the URLs of the settings, or else to pages of this service. The provider replaces \
\`{CHECKOUT_SESSION_ID}\` in them. An account buys a second subscription of a price only with \`allow_second\`. Without it, \
earlier checkouts of the price expire.`,
    body: Checkout,
    response: CheckoutSession,
    errors: ['subscription.running', ...PROVIDER_ERRORS],
    sideEffect: true,
    alwaysWaits: true,
    job: async (input) => {
      const { body, caller, edge, tx, requestId } = input
      requireProvider(edge.settings)
      if (body.mode === 'subscription' && !body.allow_second)
        await requireFirstSubscription(tx, caller.ownerId, body.price_id)
      const payload = {
        user_id: caller.ownerId,
        price_id: body.price_id,
        quantity: body.quantity,
        mode: body.mode,
        allow_second: body.allow_second,
        success_url: chooseRedirectUrl(edge.settings, 'success', body.success_url),
        cancel_url: chooseRedirectUrl(edge.settings, 'cancel', body.cancel_url),
      }
      const { price_id, quantity, mode } = body
      const data = { price_id, quantity, mode }
      await tx.run(appendAuditEvent(input, 'payment.checkout_requested', { accountId: caller.ownerId, data }))
      return enqueue(tx, openCheckout, payload, {
        ownerId: caller.ownerId,
        requestId,
        settings: edge.settings,
      })
    },
  }),

  route({
    method: 'get',
    path: '/catalog',
    summary: 'List the active prices',
    description: 'Returns at most 1000 prices of the payment provider.',
    response: Catalog,
    errors: PROVIDER_ERRORS,
    alwaysWaits: true,
    job: ({ edge, tx, requestId }) => {
      requireProvider(edge.settings)
      return enqueue(tx, listPrices, {}, { ownerId: null, requestId, settings: edge.settings })
    },
  }),
]

/**
 * Returns the URL for the provider's redirect: from the request, else from the settings, else a page of this service.
 */
export function chooseRedirectUrl(
  { payments, publicBaseUrl }: Pick<Settings, 'payments' | 'publicBaseUrl'>,
  which: 'success' | 'cancel',
  given: string | undefined,
): string {
  const page = which === 'success' ? '/payment/success?session_id={CHECKOUT_SESSION_ID}' : '/payment/cancel'
  const url = given ?? (which === 'success' ? payments.successUrl : payments.cancelUrl) ?? page
  // The URL is concatenated, because a URL object would escape the braces of the placeholder.
  return url.startsWith('/') ? `${publicBaseUrl}${url}` : url
}
