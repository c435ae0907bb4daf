import type { World } from './world.ts'

/** Reports why jobs do not end: open work, lock holders and the last log lines of workers. */

const QUERIES = {
  jobs: `select name, status, count(*)::int as n, min(created_at)::text as since from job
    where finished_at is null group by 1, 2 order by 1, 2`,
  deliveries: `select task.identifier as task, count(*)::int as n, count(locked_at)::int as locked, max(attempts) as attempts,
      min(run_at)::text as since from graphile_worker._private_jobs one join graphile_worker._private_tasks task on task.id = task_id
    group by 1 order by 1`,
  'deliveries of worker queues': 'select queue, count(*)::int as n from worker_delivery group by 1',
  'unlocked deliveries': `select count(*)::int as n from (
      select from graphile_worker._private_jobs for update skip locked) free`,
  transactions: `select pid, application_name, state, wait_event, now() - xact_start as age, left(query, 120) as query
    from pg_stat_activity where xact_start < now() - interval '5 s' order by xact_start`,
  leases: `select name, queues, expires_at - now() as left from worker_lease order by name`,
}

const LOG_LINES = 15

export async function diagnose({ query, workers, httpWorkers }: World): Promise<string[]> {
  const answers = await Promise.all(
    Object.entries(QUERIES).map(async ([what, question]) => {
      const rows = await query(question)
      return rows.map((row) => `${what}: ${JSON.stringify(row)}`)
    }),
  )
  const logs = [...workers, ...httpWorkers].flatMap(({ name, log }) =>
    log.slice(-LOG_LINES).map((line) => `${name}: ${line}`),
  )
  return [...answers.flat(), ...logs]
}
