import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { buildAccess, type QueueViewer } from './queues.ts'

/** The tasks that workers declare for their queues. */

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
  max_tries: z.number().nullable(),
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
      'args', t.args_schema, 'max_tries', t.max_tries, 'limit', t.most_running)), '[]')::text
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
      t.max_tries, t.most_running as "limit"
    from jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) as wanted(queue text, task text, owner integer)
    join worker_queue q on q.name = wanted.queue left join worker_task t on t.queue = q.name and t.name = wanted.task
    where worker_queue_access(q, wanted.owner, coalesce((select role = 'admin' from account where id = wanted.owner), false), null) is not null`

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
      most_running = excluded.most_running, secrets = excluded.secrets
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
