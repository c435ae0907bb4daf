import { z } from 'zod'
import { JsonText, noRows, type Query, sql } from '../db.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Worker queues and the tasks that their workers declare. */

/** A caller whose access to queues is checked, see `worker_queue_access`. */
export type QueueViewer = [caller: number | null, isAdmin: boolean, keyOrganization: number | null]

const buildAccess = (first: number): string =>
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

/** One task of a queue as JSON; no row if it is not declared, or if the caller may not know of the queue. */
export const readWorkerTask: ReadStatement<[...viewer: QueueViewer, name: string, task: string]> = {
  name: 'worker_task',
  text: `
    select worker_task_json(t)::text from worker_queue q join worker_task t on t.queue = q.name and t.name = $5
    where q.name = $4 and ${buildAccess(1)} is not null`,
}

/** A task as those who add its jobs need it. */
export const DeclaredTask = z.object({
  queue: z.string(),
  name: z.string(),
  /** True if the queue accepts undeclared tasks. */
  is_open: z.boolean(),
  is_declared: z.boolean(),
  args: z.unknown(),
  result: z.unknown(),
  max_tries: z.number().nullable(),
  timeout_seconds: z.number().nullable(),
  limit: z.number().nullable(),
})
export type DeclaredTask = z.output<typeof DeclaredTask>

/**
 * The named tasks of queues that the caller may use, as JSON. An undeclared task of such a queue has `is_declared` = false;
 * other queues are left out.
 */
export const readDeclaredTasks: ReadStatement<
  [...viewer: QueueViewer, queues: readonly string[], tasks: readonly string[]]
> = {
  name: 'declared_tasks',
  text: `
    select coalesce(json_agg(json_build_object('queue', q.name, 'name', wanted.task, 'is_open', q.is_open, 'is_declared', t.name is not null,
      'args', t.args_schema, 'result', t.result_schema, 'max_tries', t.max_tries, 'timeout_seconds', t.timeout_seconds,
      'limit', t.most_running)), '[]')::text
    from unnest($4::text[], $5::text[]) as wanted(queue, task) join worker_queue q on q.name = wanted.queue
    left join worker_task t on t.queue = q.name and t.name = wanted.task
    where ${buildAccess(1)} is not null`,
}

/** A task, and the account for which it is added. */
export interface WantedTask {
  readonly queue: string
  readonly task: string
  readonly owner: number | null
}

/** Like {@link readDeclaredTasks}, each for an owner who needs access to the queue. */
export const listDeclaredTasks = (
  wanted: readonly WantedTask[],
): Query<DeclaredTask & { owner: number | null }> =>
  sql.type(DeclaredTask.extend({ owner: z.number().nullable() }))`
    select q.name as queue, wanted.task as name, wanted.owner, q.is_open, t.name is not null as is_declared, t.args_schema as args,
      t.result_schema as result, t.max_tries, t.timeout_seconds, t.most_running as "limit"
    from jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) as wanted(queue text, task text, owner integer)
    join worker_queue q on q.name = wanted.queue left join worker_task t on t.queue = q.name and t.name = wanted.task
    where worker_queue_access(q, wanted.owner, coalesce((select role = 'admin' from account where id = wanted.owner), false), null) is not null`

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
  endpoint_url: z.string().nullable(),
})
export type LockedQueue = z.output<typeof LockedQueue>

/** Locks a queue for a change; the caller's access may be null. */
export const lockWorkerQueue = (
  name: string,
  [caller, isAdmin, keyOrganization]: QueueViewer,
): Query<LockedQueue> =>
  sql.type(LockedQueue)`
    select q.name, worker_queue_access(q, ${caller}::int, ${isAdmin}, ${keyOrganization}::int) as access,
      account_id, organization_id, endpoint_url
    from worker_queue q where q.name = ${name} for update`

export interface WorkerQueueFields {
  /** Undefined fields stay. */
  readonly description?: string | null | undefined
  readonly isOpen?: boolean | undefined
  /** Null removes the endpoint. */
  readonly endpoint?: StoredEndpoint | null | undefined
}

/** Changes a queue, and wakes whoever waits for its jobs. */
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

/** A task as a caller declares it. */
export interface TaskFields {
  readonly name: string
  readonly args?: unknown
  readonly result?: unknown
  readonly max_tries?: number | null | undefined
  readonly timeout_seconds?: number | null | undefined
  readonly stall_seconds?: number | null | undefined
  readonly limit?: number | null | undefined
  readonly secrets?: readonly string[] | undefined
}

/** Declares tasks of a queue, whatever they were before. Writes only what has changed. */
export const declareTasks = (queue: string, tasks: readonly TaskFields[]): Query<unknown> =>
  sql.type(noRows)`
    insert into worker_task as t (queue, name, args_schema, result_schema, max_tries, timeout_seconds, stall_seconds, most_running, secrets)
    select ${queue}, d.name, nullif(d.args, 'null'), nullif(d.result, 'null'), d.max_tries, d.timeout_seconds, d.stall_seconds, d."limit",
      coalesce(d.secrets, '{}')
    from jsonb_to_recordset(${JSON.stringify(tasks)}::jsonb) as d(name text, args jsonb, result jsonb, max_tries int, timeout_seconds int,
      stall_seconds int, "limit" int, secrets text[])
    order by d.name
    on conflict on constraint worker_task_pkey do update set args_schema = excluded.args_schema, result_schema = excluded.result_schema,
      max_tries = excluded.max_tries, timeout_seconds = excluded.timeout_seconds, stall_seconds = excluded.stall_seconds,
      most_running = excluded.most_running, secrets = excluded.secrets, updated_at = now()
    where (t.args_schema, t.result_schema, t.max_tries, t.timeout_seconds, t.stall_seconds, t.most_running, t.secrets)
      is distinct from (excluded.args_schema, excluded.result_schema, excluded.max_tries, excluded.timeout_seconds,
        excluded.stall_seconds, excluded.most_running, excluded.secrets)`

/** Number of declared tasks of a queue. */
export const countTasks = (queue: string): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    select count(*)::int as count from worker_task where queue = ${queue}`

/** Removes the declaration of a task; returns its name. */
export const deleteTask = (queue: string, name: string): Query<{ name: string }> =>
  sql.type(z.object({ name: z.string() }))`
    delete from worker_task where queue = ${queue} and name = ${name} returning name`

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

const PushTarget = z.object({
  url: z.string(),
  secret: z.string(),
  timeout_seconds: z.number().nullable(),
  result: z.unknown(),
  tries: z.number(),
  max_tries: z.number(),
  traceparent: z.string().nullable(),
  dependencies: z.unknown(),
  now_ms: z.number(),
})
export type PushTarget = z.output<typeof PushTarget>

// Most bytes of the results of a job's dependencies in a request.
const MAX_DEPENDENCY_BYTES = 64 * 1024

/**
 * Returns the endpoint of a queue, what the task of a job declares, and what the endpoint gets to know of the job. No row if
 * the queue has no endpoint or its owner is inactive.
 */
export const findPushTarget = (queue: string, task: string, job: string): Query<PushTarget> =>
  sql.prepared('push_target', PushTarget)`
    select q.endpoint_url as url, q.endpoint_secret as secret, t.timeout_seconds, t.result_schema as result, job.tries, job.max_tries,
      job.trace_parent as traceparent, worker_dependencies(job.after, ${MAX_DEPENDENCY_BYTES}) as dependencies,
      extract(epoch from now())::float8 * 1000 as now_ms
    from worker_queue q join job on job.id = ${job}::uuid left join worker_task t on t.queue = q.name and t.name = ${task}
    where q.name = ${queue} and q.endpoint_url is not null and worker_queue_is_active(q)`

/** Names of the queues whose jobs are sent to endpoints. */
export const listPushQueues = (): Query<{ name: string }> =>
  sql.type(z.object({ name: z.string() }))`
    select name from worker_queue q where endpoint_url is not null and worker_queue_is_active(q) order by name`
