import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import { requireQuota } from '../../../sql/quotas/quotas.ts'
import {
  deleteWorkerQueue,
  insertWorkerQueue,
  type LockedQueue,
  readWorkerQueue,
  readWorkerQueues,
  updateWorkerQueue,
  WORKER_QUEUE_ORDER,
} from '../../../sql/worker-queues/queues.ts'
import { queuesOf, tasks } from '../../../tasks/index.ts'
import { enqueue } from '../../../tasks/task.ts'
import { cancelStranded } from '../../../tasks/worker-queues/cancel-stranded.task.ts'
import { revealSealed } from '../../pipeline/answer/sealed-answer.ts'
import { answerArray, buildCursorSchema, buildCursorValues } from '../../pipeline/request/lists.ts'
import { count } from '../../pipeline/request/schemas.ts'
import { answerCompactJson, answerJson, route } from '../../pipeline/route.ts'
import { appendAuditEvent, type EventRequest } from '../../pipeline/write/audit.ts'
import { lockForRole, ROLE_ERRORS, requireOrganization } from '../orgs/access.ts'
import { changeQueue, viewerOf } from './access.ts'
import { addSecret, prepareEndpoint } from './endpoint-secrets.ts'
import { NewQueue, QueueChange, QueueParams, WorkerQueue } from './shapes.ts'

/** Routes of the queues themselves. */

// Names of our own queues, and words that metrics use.
const RESERVED_NAMES: ReadonlySet<string> = new Set([...queuesOf(tasks), 'default', 'other'])

export const queueRoutes = [
  route({
    method: 'post',
    path: '',
    allowsOrganizationKeys: true,
    summary: 'Add a worker queue',
    description: `The queue belongs to the account, or with \`organization_id\` to an organization of which it is an admin or owner. \
Its name is unique in the whole service. With \`endpoint\`, the service sends its jobs there instead of waiting for claims.`,
    body: NewQueue,
    response: WorkerQueue,
    status: 201,
    errors: ['worker_queue.name_taken', 'worker_queue.ending', 'quota.worker_queues', ...ROLE_ERRORS],
    sideEffect: true,
    hasCredentials: true,
    addUnstored: revealSealed,
    handle: (input) => {
      const { body, caller, edge, transaction } = input
      const { name, organization_id: organizationId = null, description = null } = body
      requireOrganization(caller, organizationId)
      if (RESERVED_NAMES.has(name)) throw fail('worker_queue.name_taken')
      const endpoint = body.endpoint === undefined ? null : prepareEndpoint(edge, name, body.endpoint)
      return transaction(async (tx) => {
        if (organizationId !== null)
          await lockForRole(tx, { params: { org_id: organizationId }, caller }, 'admin')
        const created = await tx.maybeOne(
          insertWorkerQueue({
            name,
            accountId: organizationId === null ? caller.ownerId : null,
            organizationId,
            createdBy: caller.ownerId,
            description,
            isOpen: body.open,
            endpoint,
          }),
        )
        if (created === null) throw fail('worker_queue.ending')
        await requireQuota(tx, caller.ownerId, ['worker_queues'], edge.settings.quotas)
        const owner = {
          account_id: organizationId === null ? caller.ownerId : null,
          organization_id: organizationId,
        }
        await tx.run(auditQueue(input, 'worker_queue.created', { name, ...owner }, {}))
        return answerJson(addSecret(edge, created.json, endpoint), {
          headers: [['location', `/api/v1/worker-queues/${name}`]],
        })
      })
    },
  }),

  route({
    method: 'get',
    path: '',
    allowsOrganizationKeys: true,
    summary: 'List the worker queues that the caller may use, by name',
    query: z.object({
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      cursor: buildCursorSchema(WORKER_QUEUE_ORDER),
    }),
    response: z.array(WorkerQueue),
    reads: 'list',
    handle: async ({ query, caller, reader, request }) => {
      const page = [buildCursorValues(query.cursor), 0, query.limit] as const
      return answerArray((await reader.text(readWorkerQueues, [...viewerOf(caller), ...page]))!, request)
    },
  }),

  route({
    method: 'get',
    path: '/:name',
    allowsOrganizationKeys: true,
    summary: 'Get a worker queue, its tasks and the numbers of its jobs',
    params: QueueParams,
    response: WorkerQueue,
    errors: ['worker_queue.missing'],
    handle: async ({ params, caller, reader }) => {
      const text = await reader.text(readWorkerQueue, [...viewerOf(caller), params.name])
      if (text === null) throw fail('worker_queue.missing')
      return answerJson(text)
    },
  }),

  route({
    method: 'patch',
    path: '/:name',
    allowsOrganizationKeys: true,
    summary: 'Update a worker queue',
    description:
      'A new `endpoint` replaces the previous one, with its secret. Attempts under way end as they began.',
    params: QueueParams,
    body: QueueChange,
    response: WorkerQueue,
    errors: ['worker_queue.missing', 'org.forbidden'],
    hasCredentials: true,
    addUnstored: revealSealed,
    handle: (input) => {
      const { body, edge, params } = input
      const endpoint = body.endpoint ? prepareEndpoint(edge, params.name, body.endpoint) : body.endpoint
      return changeQueue(input, async (tx, queue) => {
        const { json } = await tx.one(
          updateWorkerQueue(queue.name, {
            description: body.description,
            isOpen: body.open,
            endpoint,
          }),
        )
        const { endpoint: _, ...data } = body
        const url = body.endpoint === undefined ? {} : { endpoint: body.endpoint?.url ?? null }
        await tx.run(auditQueue(input, 'worker_queue.updated', queue, { ...data, ...url }))
        return answerJson(addSecret(edge, json, endpoint ?? null))
      })
    },
  }),

  route({
    method: 'delete',
    path: '/:name',
    allowsOrganizationKeys: true,
    summary: 'Delete a worker queue and cancel its jobs',
    description:
      'Its workers lose their leases, and its unfinished jobs are cancelled. Results remain until they expire.',
    params: QueueParams,
    errors: ['worker_queue.missing', 'org.forbidden'],
    handle: (input) =>
      changeQueue<undefined>(input, async (tx, queue) => {
        await tx.run(deleteWorkerQueue(queue.name))
        await enqueue(
          tx,
          cancelStranded,
          { queue: queue.name },
          { ownerId: null, settings: input.edge.settings },
        )
        await tx.run(auditQueue(input, 'worker_queue.deleted', queue, {}))
        return answerCompactJson<undefined>('', { status: 204 })
      }),
  }),
]

export function auditQueue(
  input: EventRequest,
  kind: `worker_queue.${'created' | 'updated' | 'deleted' | 'task_declared' | 'task_removed'}`,
  queue: Pick<LockedQueue, 'name' | 'account_id' | 'organization_id'>,
  data: object,
) {
  return appendAuditEvent(input, kind, {
    accountId: queue.account_id,
    organizationId: queue.organization_id,
    data: { queue: queue.name, ...data },
  })
}
