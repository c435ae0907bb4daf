import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import { MAX_DEPENDENCY_BYTES } from './claims.ts'

/** Jobs that are sent to the endpoint of their queue. */

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

/**
 * Inserts the lease under which an endpoint may report about a job that it is sent. The job runs under it once the
 * endpoint has taken it, see {@link handOver}.
 */
export const insertPushLease = (
  lease: string,
  queue: string,
  name: string,
  seconds: number,
): Query<unknown> =>
  sql.type(noRows)`
    insert into worker_lease (id, name, queues, queue, info, ttl_seconds, expires_at)
    values (${lease}::uuid, ${name}, array[${queue}], ${queue}, '{"push": true}', ${seconds}::int, now() + make_interval(secs => ${seconds}::int))`

/** Lets a job run on under the lease of its endpoint. No row if the attempt has ended. */
export const handOver = (
  job: string,
  attempt: number,
  lease: string,
  seconds: number,
): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`
    with renewed as (
      update worker_lease set expires_at = now() + make_interval(secs => ${seconds}::int) where id = ${lease}::uuid returning id
    )
    update job set lease_id = renewed.id from renewed
    where job.id = ${job}::uuid and job.attempt = ${attempt}::int and job.lease_id is not null returning job.id`
