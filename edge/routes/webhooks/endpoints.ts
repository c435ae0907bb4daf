import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import { requireQuota } from '../../../sql/quotas/quotas.ts'
import {
  addChallenge,
  addTestDelivery,
  ENDPOINT_ORDER,
  type EndpointFields,
  insertEndpoint,
  markEndpointDeleted,
  type OwnedEndpoint,
  PREVIOUS_SECRET_HOURS,
  readEndpoint,
  readEndpoints,
  readOrganizationEndpoints,
  readServiceEndpoints,
  rollSecret,
  updateEndpoint,
} from '../../../sql/webhooks/webhooks.ts'
import { createWebhookSecret, webhookSealUseOf } from '../../../tasks/webhooks/signature.ts'
import { validateWebhookUrl, webhookHostOf } from '../../../tasks/webhooks/url.ts'
import { makeMessageExample } from '../../openapi/webhooks.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { addSealed, revealSealed } from '../../pipeline/answer/sealed-answer.ts'
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
  type EndpointInput,
  managerOf,
  requireEventScopes,
  requireOwnEndpoint,
  requireOwnUrl,
  requireServiceAdmin,
  withEndpoint,
} from './access.ts'
import {
  CreatedEndpoint,
  Delivery,
  Endpoint,
  EndpointChange,
  EndpointParams,
  EndpointScope,
  NewEndpoint,
  RolledSecret,
  TestRequest,
} from './shapes.ts'

// Account of the service's quotas in `quota_usage`.
const SERVICE_QUOTAS = 0

/** Routes for webhook endpoints, which receive the events of their accounts or of all. */
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
it, and see its deliveries. With \`scope: service\`, for admins of the service, the endpoint receives the events of all \
accounts, whose id each message has as \`account_id\`. It then belongs to all admins of the service and survives the account \
that adds it. The quota \`webhook_endpoints\` limits the endpoints, and \`pending_deliveries\` the waiting \
messages; events beyond it are not recorded. An endpoint ends with the API key that added it. An API key also needs the \
scope to read the areas of the events: \`jobs\`, \`batches\`, \`documents\`, \`comms\`, \`payments\` or \`blog\`.`,
    body: NewEndpoint,
    response: CreatedEndpoint,
    status: 201,
    errors: [
      'quota.webhook_endpoints',
      'webhook.no_account',
      'auth.forbidden',
      'auth.admin_factor',
      ...ROLE_ERRORS,
    ],
    sideEffect: true,
    hasCredentials: true,
    addUnstored: revealSealed,
    handle: addEndpoint,
  }),

  route({
    method: 'get',
    path: '',
    allowsOrganizationKeys: true,
    summary: 'List webhook endpoints, newest first',
    description:
      'Lists those of the caller or, with `organization_id`, those of an organization, for its admins and owners. With `scope=service`, lists those of the service, for admins of the service.',
    query: z.object({
      organization_id: RowId.optional(),
      scope: EndpointScope.optional(),
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      cursor: buildCursorSchema(ENDPOINT_ORDER),
    }),
    response: z.array(Endpoint),
    errors: ['auth.forbidden', 'auth.admin_factor', ...ROLE_ERRORS],
    reads: 'list',
    handle: async ({ query, caller, reader, request }) => {
      const page = [buildCursorValues(query.cursor), 0, query.limit] as const
      const { organization_id: organization = null, scope } = query
      requireOrganization(caller, organization)
      if (scope === 'service') {
        requireServiceAdmin(caller, 'query', organization)
        return answerArray((await reader.text(readServiceEndpoints, page))!, request)
      }
      const text =
        organization === null
          ? await reader.text(readEndpoints, [caller.ownerId ?? 0, ...page])
          : requireAccess(
              await reader.text(readOrganizationEndpoints, [organization, caller.ownerId, ...page]),
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
        await tx.run(
          auditEndpoint(input, 'webhook.deleted', endpoint, { url: endpoint.url, events: endpoint.events }),
        )
        return undefined
      }),
  }),

  route({
    method: 'post',
    path: '/:endpoint_id/challenge',
    allowsOrganizationKeys: true,
    summary: 'Send another challenge to a webhook endpoint',
    description:
      'For a receiver that did not echo the first challenge, for example because it was not ready. It has a new token.',
    params: EndpointParams,
    response: Detail,
    status: 202,
    errors: ['webhook.missing', 'webhook.not_yours', 'webhook.callbacks', 'quota.pending_deliveries'],
    sideEffect: true,
    handle: (input) =>
      withEndpoint(input, async (tx, endpoint) => {
        requireOwnUrl(input.caller, endpoint)
        const { endpoint_id: id } = input.params
        if ((await tx.maybeOne(addChallenge(id, createChallengeToken()))) === null)
          throw fail('quota.pending_deliveries')
        return { detail: 'A challenge is on its way' }
      }),
  }),

  route({
    method: 'post',
    path: '/:endpoint_id/test',
    allowsOrganizationKeys: true,
    summary: 'Send a test event to a webhook endpoint',
    description: `Sends \`webhook.test\`, which is delivered, retried and listed like an event. With \`type\`, its \`data\` has that type \
and example data of such an event. The endpoint needs no subscription to either.`,
    params: EndpointParams,
    body: TestRequest.default({}),
    response: Delivery,
    status: 202,
    errors: ['webhook.missing', 'webhook.not_yours', 'webhook.callbacks', 'quota.pending_deliveries'],
    sideEffect: true,
    handle: (input) =>
      withEndpoint(input, async (tx, endpoint) => {
        requireOwnUrl(input.caller, endpoint)
        const { type = null } = input.body
        const data = type === null ? null : makeMessageExample(type)
        const added = await tx.maybeOne(addTestDelivery(input.params.endpoint_id, { type, data }))
        if (added === null) throw fail('quota.pending_deliveries')
        return answerJson<z.input<typeof Delivery>>(added.json)
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
    addUnstored: revealSealed,
    handle: (input) =>
      withEndpoint(input, async (tx, endpoint) => {
        requireOwnEndpoint(input.caller, endpoint)
        const { endpoint_id } = input.params
        const secret = createWebhookSecret()
        const sealed = input.edge.keys.seal(webhookSealUseOf(endpoint.account_id), secret)
        const { secret_version: version } = await tx.one(rollSecret(endpoint_id, sealed))
        await tx.run(auditEndpoint(input, 'webhook.secret_rolled', endpoint, { version }))
        const json = JSON.stringify({ endpoint_id, version })
        return answerJson<z.input<typeof RolledSecret>>(addSealed(input.edge, json, { secret }))
      }),
  }),
]

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
  if (caller.ownerId === null) throw fail('webhook.no_account')
  requireOrganization(caller, organizationId)
  if (body.scope === 'service') requireServiceAdmin(caller, 'body', organizationId)
  // The service has no account.
  const accountId = body.scope === 'service' ? null : caller.ownerId
  checkUrl(edge, url)
  requireEventScopes(caller, body.events)
  const events = [...new Set(body.events)].sort()
  const secret = createWebhookSecret()
  return input.transaction(async (tx) => {
    if (organizationId !== null)
      await lockForRole(tx, { params: { org_id: organizationId }, caller }, 'admin')
    await lockCaller(tx, caller)
    const created = await tx.one(
      insertEndpoint({
        accountId,
        organizationId,
        url,
        host: webhookHostOf(url),
        events,
        description,
        keyId: caller.key?.id ?? null,
        secret: edge.keys.seal(webhookSealUseOf(accountId), secret),
      }),
    )
    await requireQuota(tx, accountId ?? SERVICE_QUOTAS, ['webhook_endpoints'], edge.settings.quotas)
    const { id } = JSON.parse(created.json) as { id: number }
    await tx.run(addChallenge(id, createChallengeToken()))
    const data = { webhook: id, url, events, ...(accountId === null ? { scope: 'service' } : {}) }
    await tx.run(appendAuditEvent(input, 'webhook.created', { accountId, organizationId, data }))
    return answerJson(addSealed(edge, created.json, { secret }))
  })
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
      await tx.run(addChallenge(params.endpoint_id, createChallengeToken()))
    const { host: _, ...after } = fields
    const changed = Object.keys(after) as (keyof typeof after)[]
    const before = Object.fromEntries(changed.map((name) => [name, endpoint[name]]))
    await tx.run(auditEndpoint(input, 'webhook.updated', endpoint, { ...after, before }))
    return answerJson(text)
  })
}

/** Returns a token that a receiver echoes to confirm that it accepts deliveries. */
const createChallengeToken = (): string => randomBytes(32).toString('base64url')

/** Checks that the settings allow webhooks to use this URL. @throws request.invalid if they do not. */
function checkUrl({ settings }: Edge, url: string): void {
  const problem = validateWebhookUrl(url, settings.webhooks)
  if (problem !== null) throw failInvalidField('body', 'url', problem, 'custom')
}
