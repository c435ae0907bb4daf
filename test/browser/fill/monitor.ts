import { uuidv7 } from '../../../sql/ids.ts'
import { BATCH_TASK } from '../../../sql/jobs/batches.ts'
import { HISTOGRAM_BOUNDS, WINDOWS } from '../../../sql/jobs/tallies.ts'
import type { Fill } from './fill.ts'

const TASKS = `array['documents.extract', 'comms.send', 'ai.chat', 'webhooks.deliver', 'system.noop', 'system.io_simulation_task',
  'images/resize', 'system.a_task_with_a_name_that_is_far_longer_than_any_column_of_a_table']`
const QUEUES = `array['documents', 'comms', 'ai', 'webhooks', 'system', 'system', 'images', 'system']`
const CODES = `array['internal', 'job.crashed', 'provider.unavailable', 'job.timeout']`
const DETAIL = `case n % 4 when 0 then repeat('verylongword', 20) when 1 then '' else 'The provider did not answer within 30 s' end`
const LABEL = `case n % 5 when 0 then '' when 1 then 'Page ' || n || ' of 900' when 2 then repeat('long label ', 30) else 'Reading' end`
const BUCKETS = HISTOGRAM_BOUNDS.length + 1

/** Inserts jobs of all states, their statistics, schedules, worker queues, a batch with a graph, and spending. */
export const fill: Fill = async ({ query, accountId }) => {
  await fillJobs(query, accountId)
  const batch = await fillBatch(query, accountId)
  await fillSchedules(query, accountId)
  await fillWorkerQueues(query, accountId)
  for (const { span, spans } of Object.values(WINDOWS)) await fillTallies(query, span, spans)
  await fillSizes(query)
  await query('analyze')
  return { '/monitor/jobs/:job_id': `/monitor/jobs/${batch}` }
}

type Query = Parameters<Fill>[0]['query']

/** 10,000 jobs: 9,000 ended ones, of which half failed alike, then waiting ones that no worker starts. */
async function fillJobs(query: Query, accountId: number): Promise<void> {
  await query(
    `insert into account (email, password_hash) select 'owner' || n || '@' || repeat('long-', n) || 'example.com', 'x'
     from generate_series(1, 5) n on conflict do nothing`,
  )
  await query(
    `insert into job (id, name, queue, owner_id, mailbox, key, payload, status, label, attempt, tries, max_tries, worker, error_code,
       error_detail, request_id, result, created_at, run_at, started_at, finished_at)
     select gen_random_uuid(), (${TASKS})[task], (${QUEUES})[task], case n % 3 when 0 then $1::int when 1 then o.id end, 'm' || n % 50,
       case n % 20 when 0 then 'customer ' || n end, jsonb_build_object('n', n), status, ${LABEL}, 1, 1, case n % 2 when 0 then 1 else 3 end,
       'host/' || n % 4, case status when 'failed' then case when n < 5000 then 'internal' else (${CODES})[n % 4 + 1] end end,
       case status when 'failed' then ${DETAIL} end, 'request-' || n, case status when 'done' then '{"read": 9}'::jsonb end,
       now() - n * interval '0.3 s', now() - n * interval '0.3 s', now() - n * interval '0.3 s' + interval '0.1 s',
       now() - n * interval '0.3 s' + interval '0.1 s' + n % 97 * interval '13 ms'
     from (select n, n % 8 + 1 as task, case when n < 5000 then 'failed' else (array['done', 'done', 'failed', 'cancelled'])[n % 4 + 1] end as status
       from generate_series(1, 9000) n) numbered
     left join lateral (select id from account where email like 'owner%' order by id offset n % 5 limit 1) o on true`,
    [accountId],
  )
  // Queued jobs in the future, so that no worker of a test takes them.
  await query(
    `insert into job (id, name, queue, owner_id, mailbox, payload, status, label, max_tries, run_at, created_at)
     select gen_random_uuid(), (${TASKS})[n % 8 + 1], (${QUEUES})[n % 8 + 1], $1, 'later', '{}', 'scheduled', '', 3, now() + interval '20 days',
       now() - n * interval '1 min' from generate_series(1, 1000) n`,
    [accountId],
  )
  await query(
    `select job_count_add(array_agg(queue), 1, 0) from job where status = 'scheduled' and mailbox = 'later'`,
  )
}

/** A batch of 300 jobs in five levels, in every state. Each job depends on up to three of the level before. */
async function fillBatch(query: Query, accountId: number): Promise<string> {
  const batch = uuidv7()
  const ids = Array.from({ length: 300 }, () => uuidv7())
  const parentsOf = (i: number): string[] =>
    i < 60 ? [] : [0, 7, 19].map((shift) => ids[(Math.floor(i / 60) - 1) * 60 + ((i + shift) % 60)]!)
  const jobs = ids.map((id, i) => {
    const status =
      i < 120 ? 'done' : i < 150 ? 'failed' : i < 200 ? 'done' : i < 240 ? 'cancelled' : 'waiting'
    return { id, i, status, after: i < 60 ? null : parentsOf(i) }
  })
  await query(
    `insert into job (id, name, queue, owner_id, mailbox, payload, status, label, max_tries, waits_for, progress_current, progress_total)
     values ($1, '${BATCH_TASK}', 'system', $2, 'batch', '{"name": "A nightly batch of pictures", "is_open": false}', 'waiting', '240 of 300 tasks have ended', 1, 60, 240, 300)`,
    [batch, accountId],
  )
  await query(
    `insert into job (id, name, queue, owner_id, mailbox, payload, status, batch_id, after, after_outcome, waits_for, max_tries, attempt, tries,
       error_code, error_detail, created_at, started_at, finished_at)
     select (j ->> 'id')::uuid, (${TASKS})[(j ->> 'i')::int % 7 + 1], 'system', $2, 'batch/' || (j ->> 'i'), '{}', j ->> 'status', $1,
       after, case when after is not null then 'done' end, case j ->> 'status' when 'waiting' then 3 end, 3, 1, 1,
       case when j ->> 'status' in ('failed', 'cancelled') then 'job.dependency_failed' end, case when j ->> 'status' in ('failed', 'cancelled') then 'It broke' end,
       now() - interval '10 min', case when j ->> 'status' in ('done', 'failed') then now() - interval '9 min' + (j ->> 'i')::int * interval '0.4 s' end,
       case when j ->> 'status' <> 'waiting' then now() - interval '9 min' + (j ->> 'i')::int * interval '0.5 s' + interval '3 s' end
     from (select j, (select array_agg(value::uuid) from jsonb_array_elements_text(nullif(j -> 'after', 'null')) value) as after
       from jsonb_array_elements($3::jsonb) j) member`,
    [batch, accountId, JSON.stringify(jobs)],
  )
  return batch
}

async function fillSchedules(query: Query, accountId: number): Promise<void> {
  await query(
    `insert into schedule (id, owner_id, name, task_name, queue_type, args, cron, every_seconds, time_zone, overlap, catch_up, paused_at, next_at,
       last_skipped_at, last_skip_reason, last_job_id, last_run_at, recent_job_ids, created_at)
     select gen_random_uuid(), $1, case n % 4 when 0 then repeat('schedule', 12) else 'Schedule ' || n end, 'noop', 'system', '{}',
       case n % 2 when 0 then '30 2 * * mon-fri' end, case n % 2 when 1 then 3600 end, 'Europe/Berlin', 'skip', 'none',
       case n % 5 when 0 then now() end, case when n % 5 > 0 then now() + interval '10 days' end,
       case n % 7 when 0 then now() end, case n % 7 when 0 then 'overlap' end, recent[1], case when recent is not null then now() - interval '1 day' end,
       coalesce(recent, '{}'), now() - n * interval '1 s'
     from generate_series(1, 10000) n left join lateral (select case when n % 3 > 0 then (array(select id from job where status in ('done', 'failed')
       and batch_id is null and n < 200 order by id limit 20)) end as recent) jobs on cardinality(recent) > 0`,
    [accountId],
  )
}

async function fillWorkerQueues(query: Query, accountId: number): Promise<void> {
  await query(
    `insert into worker_queue (name, account_id, created_by, description, is_open) select case n when 1 then 'images' else 'queue-' || n end, $1, $1,
       case n % 3 when 0 then repeat('long words ', 20) when 1 then 'Pictures of products' end, n % 2 = 0 from generate_series(1, 10000) n on conflict do nothing`,
    [accountId],
  )
  await query(
    `insert into worker_task (queue, name, args_schema, max_tries, timeout_seconds, most_running)
     select 'images', 'task-' || n, '{"type": "object", "properties": {"url": {"type": "string"}}}', 3, 60, n from generate_series(1, 12) n on conflict do nothing`,
  )
}

/** Returns SQL for a histogram of `attempts` around a bucket. */
const buildHistogram = (bucket: string): string =>
  `(select array_agg((case abs(b - (${bucket})::int) when 0 then attempts / 2 when 1 then attempts / 4 when 2 then attempts / 12 else 0 end)::bigint
    order by b) from generate_series(1, ${BUCKETS}) b)`

/** Statistics of five queues for each span of a window, with times that rise and fall. */
async function fillTallies(query: Query, span: number, spans: number): Promise<void> {
  await query(
    `insert into job_tally (span, starts_at, queue, name, outcome, attempts, run_seconds, wait_seconds, runs, waits)
     select $1::int, date_bin(make_interval(secs => $1::int), now(), 'epoch') - make_interval(secs => $1::int * n), (${QUEUES})[q],
       (${TASKS})[q], outcome, attempts, attempts, attempts, ${buildHistogram('14 + q + 4 * sin(n / 8.0)')}, ${buildHistogram('8 + q + 5 * cos(n / 11.0 + q)')}
     from generate_series(0, $2::int - 1) n cross join generate_series(1, 5) q cross join unnest(array['done', 'failed']) outcome
     cross join lateral (select case outcome when 'failed' then (n + q) % 4 else (40 + 30 * sin(n / 9.0 + q) + q * n % 7)::int end as attempts) counted
     on conflict do nothing`,
    [span, spans],
  )
}

async function fillSizes(query: Query): Promise<void> {
  await query(
    `insert into table_size (day, name, rows, bytes) select current_date - n, c.relname, 1000 * (31 - n), pg_total_relation_size(c.oid) * (60 - n) / 60
     from generate_series(1, 30) n cross join pg_class c where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace on conflict do nothing`,
  )
  await query(
    `insert into ai_usage (user_id, action, vendor, model, input_tokens, output_tokens, cost, estimated, success, created_at)
     select 'u', 'chat', 'vendor ' || n % 3, case n % 8 when 0 then repeat('model-name-', 8) else 'model-' || n % 8 end, 900, 100,
       case n % 9 when 0 then null else 0.01 * (n % 40) end, false, true, now() - n * interval '40 min' from generate_series(1, 10000) n`,
  )
  await query(
    `insert into comms_send (id, channel, job_id, recipients, status, message, requested_at, settled_at)
     select gen_random_uuid(), (array['sms', 'email', 'call'])[n % 3 + 1], gen_random_uuid(), '{x}', (array['unknown', 'sent', 'failed'])[n % 2 + 1], '{}',
       now() - n * interval '5 min', now() - n * interval '5 min' from generate_series(1, 3000) n`,
  )
}
