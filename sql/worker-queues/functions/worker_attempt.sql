-- Returns a job as the report of a worker sees it: the attempt that runs under the lease, or how a given attempt has ended.
create or replace function worker_attempt(j job, lease uuid, given integer) returns json language sql stable
as $$
  select json_build_object('id', j.id, 'name', j.name, 'attempt', j.attempt, 'tries', j.tries, 'max_tries', j.max_tries,
    'is_current', j.attempt = given and j.lease_id is not null and (j.lease_id = lease or push.is_pushed),
    'is_cancelled', j.cancel_requested_at is not null,
    'ended', case when j.attempt = given and j.finished_at is not null then j.status else (
      select e.ended ->> 'outcome' from job_event_row e
      where e.job_id = j.id and e.attempt = given and e.ended is not null order by e.seq limit 1) end,
    'claimed_seconds', extract(epoch from clock_timestamp() - claimed.at)::float8,
    'waited_seconds', greatest(extract(epoch from claimed.at - greatest(j.created_at, j.run_at))::float8, 0),
    'silent_seconds', extract(epoch from clock_timestamp() - greatest(claimed.at, (
      select e.created_at from job_event_row e where e.job_id = j.id order by e.seq desc limit 1)))::float8)
  from (select coalesce((select min(e.created_at) from job_event_row e
      where e.job_id = j.id and e.attempt = j.attempt and e.ended is null and j.attempt > 1), j.started_at) as at) claimed,
    (select exists (select from worker_lease l where l.id = lease and l.info ? 'push') as is_pushed) push
$$;
