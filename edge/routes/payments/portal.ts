import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import { findCustomerByAccount } from '../../../sql/payments/changes.ts'
import { openPortal } from '../../../tasks/payments/portal.task.ts'
import { isRedirectTarget } from '../../../tasks/payments/settings.ts'
import { PortalSession } from '../../../tasks/payments/shapes.ts'
import { isAllowedRedirect } from '../../../tasks/platform/addresses.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { enqueue } from '../../../tasks/task.ts'
import { failInvalidField } from '../../pipeline/request/input.ts'
import { route } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { PROVIDER_ERRORS, requireProvider } from './shapes.ts'

const Portal = z
  .strictObject({ return_url: z.string().optional() })
  .meta({ id: 'PortalRequest', examples: [{ return_url: '/monitor' }] })

/** Opens the provider's page for the caller's own customer. */
export const portalRoute = route({
  method: 'post',
  path: '/portal',
  summary: 'Open the billing portal',
  description: `On this page of the payment provider, the caller manages payment methods, invoices and subscriptions. Its link \
back leads to \`return_url\`: a path of this service, or a URL whose origin is that of \`PUBLIC_BASE_URL\` or one of \
\`CORS_ORIGINS\`. Default: \`PUBLIC_BASE_URL\`. An account is a customer from its first checkout on.`,
  body: Portal.default({}),
  response: PortalSession,
  errors: ['payment.customer_missing', ...PROVIDER_ERRORS],
  sideEffect: true,
  alwaysWaits: true,
  job: async (input) => {
    const { body, caller, edge, tx, requestId } = input
    const return_url = resolveReturnUrl(edge.settings, body.return_url)
    requireProvider(edge.settings)
    const { ownerId } = caller
    if (ownerId === null || (await tx.maybeOne(findCustomerByAccount(ownerId))) === null)
      throw fail('payment.customer_missing')
    await tx.run(
      appendAuditEvent(input, 'payment.portal_requested', { accountId: ownerId, data: { return_url } }),
    )
    const payload = { user_id: ownerId, return_url }
    return enqueue(tx, openPortal, payload, { ownerId, requestId, settings: edge.settings })
  },
})

/** Returns the absolute URL of the portal's link back. @throws fail('request.invalid') for a foreign origin */
function resolveReturnUrl(
  settings: Pick<Settings, 'publicBaseUrl' | 'corsOrigins'>,
  given: string | undefined,
): string {
  if (given === undefined) return settings.publicBaseUrl
  if (isRedirectTarget(given)) {
    if (given.startsWith('/')) return `${settings.publicBaseUrl}${given}`
    if (isAllowedRedirect(settings, given)) return given
  }
  const problem = 'must be a path that begins with /, or a URL within PUBLIC_BASE_URL or CORS_ORIGINS'
  throw failInvalidField('body', 'return_url', problem, 'invalid_format')
}
