-- Three million jobs ended within the last 20 hours, and a quarter of them have progress events. Half a million jobs
-- are waiting, and 16 are running under a long lease.

call growth.drop_indexes('job');
create table growth.job as
select n, growth.id(at) as id, at, case when n % 5 = 0 then null else growth.owner(n, size, 30, growth.size(1000)) end as owner_id,
  n % 50 = 1 as failed, n % 100 = 2 as cancelled,
  (array['comms.email', 'load_test.io_simulation_task', 'documents.extract', 'load_test.io_simulation_task'])[1 + n % 4] as task
from growth.size(3000000) size, generate_series(1, size) n, growth.moment(n, size, '20 hours') at;

insert into job (id, name, queue, owner_id, mailbox, mailbox_limit, payload, status, seq, attempt, tries, max_tries, run_at, result,
  error_code, error_detail, created_at, started_at, finished_at)
select id, task, split_part(task, '.', 1), owner_id,
  case when task = 'documents.extract' then 'document:' || n else task || '/' || coalesce(owner_id, 0) end,
  case when task = 'documents.extract' then 1 end,
  case when task = 'documents.extract' then jsonb_build_object('documentId', n, 'force', false) else '{"seconds": 1}' end,
  case when failed then 'failed' when cancelled then 'cancelled' else 'done' end,
  case when task = 'documents.extract' then 4 else 2 end, 1, 1, 3, at,
  case when not failed and not cancelled then '{"read": 3, "unread": 0, "skipped": 0}'::jsonb end,
  case when failed then 'job.crashed' end, case when failed then 'The thread that ran the job died' end,
  at, at + interval '5 ms', at + interval '90 ms'
from growth.job order by n;

insert into job_event_row (job_id, seq, kind, data, created_at)
select id, seq, 'status', jsonb_build_object('status', 'running', 'label', 'Page ' || seq || ' of 3', 'current', seq, 'total', 3), at
from growth.job, generate_series(2, 3) seq where task = 'documents.extract' order by n, seq;
drop table growth.job;
call growth.restore_indexes();

insert into worker_lease (id, name, queues, threads, expires_at)
values ('00000000-0000-7000-8000-000000000001', 'worker', '{comms,documents,load_test}', 8, now() + interval '30 days');
insert into job (id, name, queue, owner_id, mailbox, payload, status, seq, attempt, tries, max_tries, lease_id, started_at)
select uuidv7(), 'load_test.io_simulation_task', 'load_test', case when n % 4 < 2 then 2 when n = 3 then 3 else 4 + n % growth.size(10000) end,
  'load_test.io_simulation_task/' || n, '{}', 'running', 1, 1, 1, 3, '00000000-0000-7000-8000-000000000001', now()
from generate_series(1, 16) n;

-- Enqueues with the service's function, so that each mailbox gets its delivery. One job in a hundred belongs to an
-- actor.
do $$
declare
  total constant integer := growth.size(500000);
begin
  for batch in 1 .. total by 5000 loop
    perform job_enqueue((select jsonb_agg(jsonb_build_object('id', uuidv7(), 'name', task, 'queue', split_part(task, '.', 1),
      'owner_id', owner, 'mailbox', case when actor then 'document:' || n else task || '/' || owner end,
      'mailbox_limit', case when actor then 1 end, 'when_busy', 'join', 'payload', '{"seconds": 1}'::jsonb, 'max_tries', 3,
      'delay_ms', case when n % 20 = 3 then 86400000 end))
      from generate_series(batch, least(batch + 4999, total)) n, growth.owner(n, total, 20, growth.size(1000)) owner,
        lateral (select n % 100 = 0 as actor, case when n % 100 = 0 then 'documents.extract' when n % 3 = 0 then 'comms.email'
          else 'load_test.io_simulation_task' end as task) of_it));
  end loop;
end $$;

-- An open batch with ten thousand ended jobs.
with members as (
  select id from job where owner_id = 2 and finished_at is not null and queue = 'load_test' limit growth.size(10000)
), batch as (
  insert into job (id, name, queue, owner_id, mailbox, payload, status, max_tries, waits_for, progress_current, progress_total)
  select uuidv7(), 'jobs.batch', 'system', 2, 'jobs.batch/2', '{"name": "nightly", "is_open": true}', 'waiting', 3, 1, count(*), count(*)
  from members
  returning id
)
update job set batch_id = batch.id from batch where job.id in (select id from members);
-- A hundred schedules of the big owner, three of the small one, and up to a hundred of others.
insert into schedule (id, owner_id, name, task_name, queue_type, args, cron, time_zone, overlap, catch_up, next_at, created_at)
select uuidv7(), owner, 'Schedule ' || n, 'io_simulation_task', 'load_test', '{}', '30 2 * * *', 'Europe/Berlin', 'skip', 'none',
  now() + interval '20 days', now() - interval '100 days' + n * interval '1 s'
from generate_series(1, growth.size(20000)) n,
  lateral (select case when n <= 100 then 2 when n <= 103 then 3 else 4 + n % greatest(growth.size(10000), 1) end as owner) of_it
where owner <= (select max(id) from account);

-- A hundred worker queues of the big owner with ten tasks each, three of the small one, and up to a hundred of others.
insert into worker_queue (name, account_id, created_by)
select 'queue-' || account.id || '-' || n, account.id, account.id
from account cross join lateral generate_series(1, case account.id when 2 then 100 when 3 then 3 else 1 end) n
where account.id between 2 and 101;
insert into worker_task (queue, name) select name, 'task-' || n from worker_queue cross join generate_series(1, 10) n;
