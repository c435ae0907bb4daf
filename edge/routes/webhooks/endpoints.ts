import { z } from 'zod'
import type { Queries } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { requireQuota } from '../../../sql/quotas/quotas.ts'
import {
  addChallenge,
  ENDPOINT_ORDER,
  type EndpointFields,
  type EndpointManager,
  insertEndpoint,
  lockManagedEndpoint,
  markEndpointDeleted,
  type OwnedEndpoint,
  PREVIOUS_SECRET_HOURS,
  readEndpoint,
  readEndpoints,
  readOrganizationEndpoints,
  rollSecret,
  updateEndpoint,
  type WebhookEvent,
} from '../../../sql/webhooks/webhooks.ts'
import { deriveChallengeToken, deriveWebhookSecret } from '../../../tasks/webhooks/signature.ts'
import { validateWebhookUrl, webhookHostOf } from '../../../tasks/webhooks/url.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { requireScope } from '../../pipeline/access/scopes.ts'
import type { Edge } from '../../pipeline/context.ts'
import { failInvalidField } from '../../pipeline/request/input.ts'
import { answerArray, buildCursorSchema, buildCursorValues } from '../../pipeline/request/lists.ts'
import { count, RowId } from '../../pipeline/request/schemas.ts'
import {
  type Answer,
  answerCompactJson,
  answerJson,
  type Input,
  route,
  type Writes,
} from '../../pipeline/route.ts'
import { appendAuditEvent, type EventRequest } from '../../pipeline/write/audit.ts'
import { lockCaller } from '../accounts/proof.ts'
import { Detail } from '../accounts/shapes.ts'
import { lockForRole, ROLE_ERRORS, requireAccess, requireOrganization } from '../orgs/access.ts'
import {
  CreatedEndpoint,
  Endpoint,
  EndpointChange,
  EndpointParams,
  NewEndpoint,
  RolledSecret,
} from './shapes.ts'

/** Routes for webhook endpoints, which receive the events of their accounts. */
export const endpointRoutes = [
  route({
    method: 'post',
    path: '',
    allowsOrganizationKeys: true,
    summary: 'Add a webhook endpoint',
    description: `It receives the events of the account that adds it, as https://www.standardwebhooks.com specifies. \
Messages are signed with the secret, which only this response shows, and retried for a day until the receiver answers 2xx. \
The first message is \`webhook.challenge\`: the receiver echoes its \`data.challenge\` anywhere in the first KiB of its \
answer. Until then, the account's endpoints at that host share WEBHOOK_UNPROVED_RATE, ten a minute by default, and further \
messages wait; afterwards WEBHOOK_RATE applies. With \`organization_id\` the endpoint also belongs to an organization: its \
admins and owners can see, describe, deactivate and delete it, and it ends when the account leaves. It still receives the \
events of the account. Only that account and admins of the service can therefore change its URL, events or secret, activate \
it, and see its deliveries. The quota \`webhook_endpoints\` limits the endpoints, and \`pending_deliveries\` the waiting \
messages; events beyond it are not recorded. An endpoint ends with the API key that added it. An API key also needs the \
scope to read the areas of the events: \`jobs\`, \`documents\`, \`comms\` or \`payments\`.`,
    body: NewEndpoint,
    response: CreatedEndpoint,
    status: 201,
    errors: ['quota.webhook_endpoints', 'webhook.no_account', ...ROLE_ERRORS],
    sideEffect: true,
    hasCredentials: true,
    addUnstored: addSecret,
    handle: addEndpoint,
  }),

  route({
    method: 'get',
    path: '',
    allowsOrganizationKeys: true,
    summary: 'List webhook endpoints, newest first',
    description:
      'Lists those of the caller or, with `organization_id`, those of an organization, for its admins and owners.',
    query: z.object({
      organization_id: RowId.optional(),
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      cursor: buildCursorSchema(ENDPOINT_ORDER),
    }),
    response: z.array(Endpoint),
    errors: ROLE_ERRORS,
    reads: 'list',
    handle: async ({ query, caller, reader, request }) => {
      const page = [buildCursorValues(query.cursor), 0, query.limit] as const
      requireOrganization(caller, query.organization_id ?? null)
      const text =
        query.organization_id === undefined
          ? await reader.text(readEndpoints, [caller.ownerId ?? 0, ...page])
          : requireAccess(
              await reader.text(readOrganizationEndpoints, [query.organization_id, caller.ownerId, ...page]),
            )
      return answerArray(text!, request)
    },
  }),

  route({
    method: 'get',
    path: '/:endpoint_id',
    allowsOrganizationKeys: true,
    summary: 'Get a webhook endpoint',
    params: EndpointParams,
    response: Endpoint,
    errors: ['webhook.missing'],
    handle: async ({ params, caller, reader }) => {
      const text = await reader.text(readEndpoint, [params.endpoint_id, ...managerOf(caller)])
      if (text === null) throw fail('webhook.missing')
      return answerCompactJson(text)
    },
  }),

  route({
    method: 'patch',
    path: '/:endpoint_id',
    allowsOrganizationKeys: true,
    summary: 'Update a webhook endpoint',
    description: `Activation of a disabled endpoint sends the messages that wait for it. The endpoint of callbacks has no \
URL and no events to change. Admins and owners of an organization can only describe and deactivate an endpoint that another \
account added. To change the URL or events, an API key also needs the scope to read the areas of the previous and new \
events.`,
    params: EndpointParams,
    body: EndpointChange,
    response: Endpoint,
    errors: ['webhook.missing', 'webhook.not_yours', 'webhook.callbacks'],
    handle: updateEndpointFields,
  }),

  route({
    method: 'delete',
    path: '/:endpoint_id',
    allowsOrganizationKeys: true,
    summary: 'Delete a webhook endpoint',
    description: 'Its deliveries are deleted, too.',
    params: EndpointParams,
    errors: ['webhook.missing'],
    handle: (input) =>
      withEndpoint(input, async (tx, endpoint) => {
        await tx.run(markEndpointDeleted(input.params.endpoint_id))
        await tx.run(auditEndpoint(input, 'webhook.deleted', endpoint, {}))
        return undefined
      }),
  }),

  route({
    method: 'post',
    path: '/:endpoint_id/challenge',
    allowsOrganizationKeys: true,
    summary: 'Send another challenge to a webhook endpoint',
    description:
      'For a receiver that did not echo the first challenge, for example because it was not ready. The token stays the same.',
    params: EndpointParams,
    response: Detail,
    status: 202,
    errors: ['webhook.missing', 'webhook.not_yours', 'webhook.callbacks', 'quota.pending_deliveries'],
    sideEffect: true,
    handle: (input) =>
      withEndpoint(input, async (tx, endpoint) => {
        requireOwnEndpoint(input.caller, endpoint)
        const { endpoint_id: id } = input.params
        if (endpoint.url === null) throw fail('webhook.callbacks')
        const token = deriveChallengeToken(input.edge.secretKey, id, endpoint.url)
        if ((await tx.maybeOne(addChallenge(id, token))) === null) throw fail('quota.pending_deliveries')
        return { detail: 'A challenge is on its way' }
      }),
  }),

  route({
    method: 'post',
    path: '/:endpoint_id/secret',
    allowsOrganizationKeys: true,
    summary: 'Rotate the secret of a webhook endpoint',
    description: `Only this response shows the new secret. For ${PREVIOUS_SECRET_HOURS} hours the previous secret also signs: \`webhook-signature\` then has both signatures.`,
    params: EndpointParams,
    response: RolledSecret,
    errors: ['webhook.missing', 'webhook.not_yours'],
    sideEffect: true,
    hasCredentials: true,
    addUnstored: ({ secretKey }: Edge, text) => {
      const rolled = JSON.parse(text) as { endpoint_id: number; version: number }
      const secret = deriveWebhookSecret(secretKey, rolled.endpoint_id, rolled.version)
      return JSON.stringify({ ...rolled, secret })
    },
    handle: (input) =>
      withEndpoint(input, async (tx, endpoint) => {
        requireOwnEndpoint(input.caller, endpoint)
        const { endpoint_id } = input.params
        const { secret_version: version } = await tx.one(rollSecret(endpoint_id))
        await tx.run(auditEndpoint(input, 'webhook.secret_rolled', endpoint, { version }))
        return answerJson<z.input<typeof RolledSecret>>(JSON.stringify({ endpoint_id, version }))
      }),
  }),
]

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

const AREA_BY_EVENT = {
  'job.done': 'jobs',
  'job.failed': 'jobs',
  'job.cancelled': 'jobs',
  'document.read': 'documents',
  'send.changed': 'comms',
  'payment.changed': 'payments',
} as const satisfies Readonly<Record<WebhookEvent, string>>

/** Checks that an API key's scopes allow reading the areas of these events. @throws fail('auth.scope') */
export function requireEventScopes(caller: Caller, events: readonly WebhookEvent[]): void {
  for (const event of events) requireScope(caller, AREA_BY_EVENT[event], 'read')
}

type EndpointInput<R, B = undefined> = Input<{ endpoint_id: number }, undefined, B, Caller> & Writes<R>

/**
 * Runs `work` in a transaction that locks an endpoint.
 * @throws webhook.missing if the caller does not manage the endpoint.
 */
function withEndpoint<R, B>(
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

function auditEndpoint(
  input: EventRequest & { readonly params: { readonly endpoint_id: number } },
  kind: 'webhook.updated' | 'webhook.deleted' | 'webhook.secret_rolled',
  endpoint: OwnedEndpoint,
  data: object,
) {
  const { account_id: accountId, organization_id: organizationId } = endpoint
  return appendAuditEvent(input, kind, {
    accountId,
    organizationId,
    data: { webhook: input.params.endpoint_id, ...data },
  })
}

type CreateInput = Input<undefined, undefined, z.output<typeof NewEndpoint>, Caller> &
  Writes<z.input<typeof CreatedEndpoint>>

function addEndpoint(input: CreateInput): Promise<Answer<z.input<typeof CreatedEndpoint>>> {
  const { body, caller, edge } = input
  const { url, organization_id: organizationId = null, description = null } = body
  const { ownerId } = caller
  if (ownerId === null) throw fail('webhook.no_account')
  requireOrganization(caller, organizationId)
  checkUrl(edge, url)
  requireEventScopes(caller, body.events)
  const events = [...new Set(body.events)].sort()
  return input.transaction(async (tx) => {
    if (organizationId !== null)
      await lockForRole(tx, { params: { org_id: organizationId }, caller }, 'admin')
    await lockCaller(tx, caller)
    const created = await tx.one(
      insertEndpoint({
        accountId: ownerId,
        organizationId,
        url,
        host: webhookHostOf(url),
        events,
        description,
        keyId: caller.key?.id ?? null,
      }),
    )
    await requireQuota(tx, ownerId, ['webhook_endpoints'], edge.settings.quotas)
    const { id } = JSON.parse(created.json) as { id: number }
    await tx.run(addChallenge(id, deriveChallengeToken(edge.secretKey, id, url)))
    const data = { webhook: id, url, events }
    await tx.run(appendAuditEvent(input, 'webhook.created', { accountId: ownerId, organizationId, data }))
    return answerJson(created.json)
  })
}

function addSecret({ secretKey }: Edge, text: string): string {
  const row = JSON.parse(text) as z.input<typeof Endpoint>
  return JSON.stringify({ ...row, secret: deriveWebhookSecret(secretKey, row.id, 1) })
}

function updateEndpointFields(
  input: EndpointInput<z.input<typeof Endpoint>, z.output<typeof EndpointChange>>,
): Promise<Answer<z.input<typeof Endpoint>>> {
  const { body, caller, edge, params } = input
  if (body.url !== undefined) checkUrl(edge, body.url)
  const fields: EndpointFields = {
    ...body,
    ...(body.url === undefined ? {} : { host: webhookHostOf(body.url) }),
    ...(body.events === undefined ? {} : { events: [...new Set(body.events)].sort() }),
  }
  return withEndpoint(input, async (tx, endpoint) => {
    // Activation also requires ownership, because it sends waiting messages to a URL that the account may no longer
    // trust.
    if (fields.url !== undefined || fields.events !== undefined || fields.is_active === true)
      requireOwnEndpoint(caller, endpoint)
    if (fields.url !== undefined || fields.events !== undefined)
      requireEventScopes(caller, [...endpoint.events, ...(body.events ?? [])])
    if (endpoint.url === null && (fields.url !== undefined || fields.events !== undefined))
      throw fail('webhook.callbacks')
    const { json: text } = await tx.one(updateEndpoint(params.endpoint_id, fields))
    if (body.url !== undefined && body.url !== endpoint.url)
      await tx.run(
        addChallenge(params.endpoint_id, deriveChallengeToken(edge.secretKey, params.endpoint_id, body.url)),
      )
    await tx.run(auditEndpoint(input, 'webhook.updated', endpoint, { ...body, events: fields.events }))
    return answerJson(text)
  })
}

/** Checks that the settings allow webhooks to use this URL. @throws request.invalid if they do not. */
function checkUrl({ settings }: Edge, url: string): void {
  const problem = validateWebhookUrl(url, settings.webhooks)
  if (problem !== null) throw failInvalidField('body', 'url', problem, 'custom')
}
