import type { Queries } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import {
  type DeliveryType,
  type EndpointManager,
  lockManagedEndpoint,
  type OwnedEndpoint,
} from '../../../sql/webhooks/webhooks.ts'
import { type Caller, findRoleFailure } from '../../pipeline/access/auth.ts'
import { requireScope } from '../../pipeline/access/scopes.ts'
import { failInvalidField } from '../../pipeline/request/input.ts'
import type { Answer, Input, Writes } from '../../pipeline/route.ts'
import { areaOfMessage } from './events.ts'

/** Checks permissions on webhook endpoints. */

/** Returns the caller's rights to see and stop endpoints, as statement parameters. */
export const managerOf = ({ ownerId, role, key }: Caller): EndpointManager => [
  ownerId,
  ownerId === null || role === 'admin',
  key?.organizationId ?? null,
]

/**
 * Checks that the caller is the endpoint's account or an admin. Required by requests that show or redirect the
 * account's events.
 * @throws webhook.not_yours
 */
export function requireOwnEndpoint(caller: Caller, endpoint: OwnedEndpoint): void {
  const [account, everything] = managerOf(caller)
  if (!everything && endpoint.account_id !== account) throw fail('webhook.not_yours')
}

/**
 * Returns the URL of the caller's own endpoint.
 * @throws webhook.not_yours; webhook.callbacks if the endpoint is for the callback URLs of jobs and has no URL
 */
export function requireOwnUrl(caller: Caller, endpoint: OwnedEndpoint): string {
  requireOwnEndpoint(caller, endpoint)
  if (endpoint.url === null) throw fail('webhook.callbacks')
  return endpoint.url
}

/** Checks that an API key's scopes allow reading the areas of these messages. @throws fail('auth.scope') */
export function requireEventScopes(caller: Caller, types: readonly DeliveryType[]): void {
  for (const type of types) {
    const area = areaOfMessage(type)
    if (area !== null) requireScope(caller, area, 'read')
  }
}

export type EndpointInput<R, B = undefined> = Input<{ endpoint_id: number }, undefined, B, Caller> & Writes<R>

/**
 * Runs `work` in a transaction that locks an endpoint.
 * @throws webhook.missing if the caller does not manage the endpoint.
 */
export function withEndpoint<R, B>(
  input: EndpointInput<R, B>,
  work: (tx: Queries, endpoint: OwnedEndpoint) => Promise<R | Answer<R>>,
): Promise<Answer<R>> {
  const { params, caller } = input
  return input.transaction(async (tx) => {
    const endpoint = await tx.maybeOne(lockManagedEndpoint(params.endpoint_id, managerOf(caller)))
    if (endpoint === null) throw fail('webhook.missing')
    return work(tx, endpoint)
  })
}

/**
 * Checks that the caller may add and list endpoints of the service, which belong to no organization.
 * @throws request.invalid, auth.forbidden, auth.admin_factor
 */
export function requireServiceAdmin(
  caller: Caller,
  location: 'body' | 'query',
  organizationId: number | null,
): void {
  if (organizationId !== null)
    throw failInvalidField(location, 'organization_id', 'excludes scope=service', 'custom')
  const failure = findRoleFailure(caller, 'admin')
  if (failure !== null) throw failure
}
