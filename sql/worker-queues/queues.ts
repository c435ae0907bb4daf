import { z } from 'zod'
import { JsonText, noRows, type Query, sql } from '../db.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Worker queues and the tasks that their workers declare. */

/** A caller whose access to queues is checked, see `worker_queue_access`. */
export type QueueViewer = [caller: number | null, isAdmin: boolean, keyOrganization: number | null]

export const buildAccess = (first: number): string =>
  `worker_queue_access(q, $${first}::int, $${first + 1}::boolean, $${first + 2}::int)`

export const WORKER_QUEUE_ORDER = { 'q.name': 'text' } as const

/** The queues that the caller may use, by name. */
export const readWorkerQueues: ReadStatement<[...viewer: QueueViewer, ...page: PageValues]> = {
  name: 'worker_queues',
  text: buildArrayText({
    table: 'worker_queue',
    row: 'q',
    id: ['name'],
    parameters: 3,
    // Each condition has an index in the order of names, or few rows.
    where: [
      '$2::boolean',
      'not $2::boolean and q.account_id = $1::int',
      `not $2::boolean and q.organization_id = any(array(
        select m.organization_id from organization_member m where m.user_id = $1::int))`,
    ].map((condition) => `${condition} and ${buildAccess(1)} is not null`),
    order: WORKER_QUEUE_ORDER,
    direction: 'asc',
    item: 'worker_queue_json(q)',
  }),
}

/** A queue; no row if the caller may not know of it. */
export const readWorkerQueue: ReadStatement<[...viewer: QueueViewer, name: string]> = {
  name: 'worker_queue',
  text: `select worker_queue_json(q)::text from worker_queue q where q.name = $4 and ${buildAccess(1)} is not null`,
}

/** Access of the caller to a queue, `manage` or `use`; no row if the caller may not know of it. */
export const readQueueAccess: ReadStatement<[...viewer: QueueViewer, name: string]> = {
  name: 'worker_queue_access',
  text: `select ${buildAccess(1)} from worker_queue q where q.name = $4`,
}

export interface NewWorkerQueue {
  readonly name: string
  readonly accountId: number | null
  readonly organizationId: number | null
  readonly createdBy: number | null
  readonly description: string | null
  readonly isOpen: boolean
  readonly endpoint: StoredEndpoint | null
}

/** The endpoint of a queue, with its sealed secret. */
export interface StoredEndpoint {
  readonly url: string
  readonly concurrency: number
  readonly secret: string
}

/** Adds a queue. No row if jobs of a deleted queue of that name have not ended. @throws worker_queue.name_taken */
export const insertWorkerQueue = (q: NewWorkerQueue): Query<{ json: string }> =>
  sql.type(JsonText)`
    with woken as (
      select pg_notify('queue_changed', ${q.name}) where ${q.endpoint !== null}
    ), created as (
      insert into worker_queue (name, account_id, organization_id, created_by, description, is_open, endpoint_url, endpoint_concurrency, endpoint_secret)
      select ${q.name}, ${q.accountId}::int, ${q.organizationId}::int, ${q.createdBy}::int, ${q.description}, ${q.isOpen}, ${q.endpoint?.url ?? null},
        ${q.endpoint?.concurrency ?? null}::int, ${q.endpoint?.secret ?? null}
      where not exists (select from job where queue = ${q.name} and status in ('waiting', 'scheduled', 'available') and finished_at is null)
        and (select coalesce(sum(running), 0) from job_count where job_count.queue = ${q.name}) = 0
      returning *
    )
    select worker_queue_json(created::worker_queue)::text as json from created left join woken on true`

const LockedQueue = z.object({
  name: z.string(),
  access: z.enum(['manage', 'use']).nullable(),
  account_id: z.number().nullable(),
  organization_id: z.number().nullable(),
})
export type LockedQueue = z.output<typeof LockedQueue>

/** Locks a queue for a change; the caller's access may be null. */
export const lockWorkerQueue = (
  name: string,
  [caller, isAdmin, keyOrganization]: QueueViewer,
): Query<LockedQueue> =>
  sql.type(LockedQueue)`
    select q.name, worker_queue_access(q, ${caller}::int, ${isAdmin}, ${keyOrganization}::int) as access,
      account_id, organization_id
    from worker_queue q where q.name = ${name} for update`

export interface WorkerQueueFields {
  /** Undefined fields stay. */
  readonly description?: string | null | undefined
  readonly isOpen?: boolean | undefined
  /** Null removes the endpoint. */
  readonly endpoint?: StoredEndpoint | null | undefined
}

/** Changes a queue, and wakes the claims that wait for its jobs. */
export const updateWorkerQueue = (name: string, f: WorkerQueueFields): Query<{ json: string }> => {
  const { endpoint } = f
  return sql.type(JsonText)`
    with changed as (
      update worker_queue set
        description = case when ${f.description !== undefined} then ${f.description ?? null} else description end,
        is_open = coalesce(${f.isOpen ?? null}::boolean, is_open),
        endpoint_url = case when ${endpoint !== undefined} then ${endpoint?.url ?? null} else endpoint_url end,
        endpoint_concurrency = case when ${endpoint !== undefined} then ${endpoint?.concurrency ?? null}::int else endpoint_concurrency end,
        endpoint_secret = case when ${endpoint !== undefined} then ${endpoint?.secret ?? null} else endpoint_secret end,
        updated_at = now()
      where name = ${name} returning *
    ), woken as (select pg_notify('queue_changed', ${name}))
    select worker_queue_json(changed::worker_queue)::text as json from changed, woken`
}

/** Deletes a queue, see `worker_queue_cleanup`. Its jobs remain, see {@link listStrandedJobs}. */
export const deleteWorkerQueue = (name: string): Query<unknown> =>
  sql.type(noRows)`delete from worker_queue where name = ${name}`

// Jobs of one kind of queue only have a slash in their names, so one job tells.
const isWorkerQueue = sql.fragment`position('/' in coalesce(
  (select name from job where job.queue = c.queue and status in ('waiting', 'scheduled', 'available') and finished_at is null limit 1),
  (select name from job where job.queue = c.queue and status = 'running' limit 1))) > 0`

/** Returns unfinished jobs of worker queues that no longer exist, at most `max`: of one, or with null of all. */
export const listStrandedJobs = (
  queue: string | null,
  max: number,
): Query<{ id: string; attempt: number; is_running: boolean }> =>
  sql.type(z.object({ id: z.string(), attempt: z.number(), is_running: z.boolean() }))`
    with gone as (
      select distinct c.queue from job_count c
      where (${queue}::text is null or c.queue = ${queue}) and not exists (select from worker_queue q where q.name = c.queue)
        and c.queued + c.running + c.waiting <> 0 and ${isWorkerQueue}
    )
    select job.id, job.attempt, job.lease_id is not null as is_running from gone cross join lateral (
      (select id, attempt, lease_id from job
        where job.queue = gone.queue and job.status in ('waiting', 'scheduled', 'available') and job.finished_at is null limit ${max})
      union all
      (select id, attempt, lease_id from job where job.queue = gone.queue and job.status = 'running' limit ${max})
    ) job limit ${max}`

/** Deletes counts that are zero, of queues that are no worker queues now; returns their number. */
export const deleteUnusedCounts = (): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with locked as (
      select * from job_count c where not exists (select from worker_queue q where q.name = c.queue)
        and c.queued = 0 and c.running = 0 and c.waiting = 0
      for update skip locked
    ), unused as (
      delete from job_count c using locked where c.id = locked.id and locked.queued = 0 and locked.running = 0 and locked.waiting = 0
      returning 1
    )
    select count(*)::int as count from unused`
