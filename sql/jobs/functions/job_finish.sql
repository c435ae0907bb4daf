-- Ends attempts. Each entry: id, attempt, outcome, result, code, detail, delay_ms, interruptions. Outcomes:
--
-- - `done`, `failed` and `cancelled` end the job. After a failure, a new request cannot help before delay_ms.
-- - `retry` requeues the job after delay_ms and counts as a try.
-- - `release` requeues it after delay_ms and does not count as a try.
-- - `wait` requeues it once the members of its batch have ended, and does not count as a try.
-- - `interrupted` is a release that counts as an interruption: the process died while it ran the job next to others.
-- - `crashed` is an interruption in isolation. It sets the total to `interruptions`, or raises it by one. At
--   `max_interruptions`, the job fails with code and detail.
--
-- A job never fails from `interrupted` alone, which raises its interruptions only up to `suspect`. From that number on,
-- it runs in isolation. Sends a delivery for the next job of each limited mailbox. Stores an event with the end of the
-- attempt only for requeued jobs, because the row of an ended job records its end. Returns the ids of the jobs whose
-- attempt this call has ended, and of those whose state has changed with them (see job_release).
create or replace function job_finish(entries jsonb, suspect integer, max_interruptions integer)
returns setof uuid
language plpgsql
as $$
#variable_conflict use_column
declare
  ended uuid[];
  final uuid[];
  has_members boolean;
  locked text[];
  released uuid[];
  freed text[];
  to_settle uuid[];
  requeued_queues text[];
  waiting_queues text[];
  ended_queues text[];
begin
  locked := array(
    select job.mailbox from jsonb_to_recordset(entries) as e(id uuid) join job on job.id = e.id where job.mailbox_limit is not null);
  if cardinality(locked) > 0 then
    perform mailbox_lock(locked);
  end if;

  -- Waits for the fenced writes of these attempts.
  perform from jsonb_to_recordset(entries) as e(id uuid, attempt integer, outcome text) join job on job.id = e.id
  where e.outcome <> 'done' and job.attempt = e.attempt and job.lease_id is not null order by job_lock_order(job) for update of job;

  with entry as (
    select * from jsonb_to_recordset(entries)
      as e(id uuid, attempt integer, outcome text, result jsonb, code text, detail text, delay_ms integer, interruptions integer)
  ), moved as (
    -- Each expression reads the row under its lock, so a cancel request that commits during the wait counts.
    update job set
      status = case
        -- A batch never ends before its members.
        when job.waits_for > 0 and (e.outcome in ('wait', 'cancelled')
          or job.cancel_requested_at is not null and e.outcome in ('retry', 'release', 'interrupted', 'crashed')) then 'waiting'
        when e.outcome not in ('retry', 'release', 'wait', 'interrupted', 'crashed') then e.outcome
        when job.cancel_requested_at is not null then 'cancelled'
        when e.outcome = 'crashed' and coalesce(e.interruptions, job.interruptions + 1) >= max_interruptions then 'failed'
        when e.delay_ms > 0 then 'scheduled'
        else 'available' end,
      lease_id = null, seq = job.seq + 1,
      result = case when e.outcome = 'done' then e.result end,
      error_code = case
        when e.outcome = 'failed' then coalesce(e.code, 'internal')
        when e.outcome = 'crashed' and job.cancel_requested_at is null
          and coalesce(e.interruptions, job.interruptions + 1) >= max_interruptions then e.code end,
      error_detail = case
        when e.outcome = 'failed' then e.detail
        when e.outcome = 'crashed' and job.cancel_requested_at is null
          and coalesce(e.interruptions, job.interruptions + 1) >= max_interruptions then e.detail end,
      retry_at = case when e.outcome = 'failed' and e.delay_ms > 0 then now() + make_interval(secs => e.delay_ms / 1000.0) end,
      finished_at = case
        when job.waits_for > 0 and (e.outcome in ('wait', 'cancelled')
          or job.cancel_requested_at is not null and e.outcome in ('retry', 'release', 'interrupted', 'crashed')) then null
        when e.outcome in ('retry', 'release', 'wait', 'interrupted', 'crashed') and job.cancel_requested_at is null
          and not (e.outcome = 'crashed' and coalesce(e.interruptions, job.interruptions + 1) >= max_interruptions) then null
        else now() end,
      tries = case when e.outcome in ('release', 'wait', 'interrupted', 'crashed') then job.tries - 1 else job.tries end,
      interruptions = case e.outcome when 'interrupted' then greatest(job.interruptions, least(job.interruptions + 1, suspect))
        when 'crashed' then coalesce(e.interruptions, job.interruptions + 1) else job.interruptions end,
      run_at = case when e.outcome in ('retry', 'release', 'wait', 'interrupted', 'crashed')
        then now() + make_interval(secs => coalesce(e.delay_ms, 0) / 1000.0) else job.run_at end
    from entry e where job.id = e.id and job.attempt = e.attempt and job.lease_id is not null
    returning job.id, job.queue, job.seq, job.status, job.finished_at, job.mailbox, job.mailbox_limit, job.label, job.progress_current,
      job.progress_total, job.settle, job.attempt, job.worker, job.batch_id, e.outcome, e.code, e.detail
  ), event as (
    insert into job_event_row (job_id, seq, kind, data, attempt, ended)
    select moved.id, moved.seq, 'status', jsonb_build_object('status', job_client_status(moved.status), 'label', moved.label,
      'current', moved.progress_current, 'total', moved.progress_total), moved.attempt, jsonb_strip_nulls(jsonb_build_object(
        'outcome', case moved.outcome when 'crashed' then 'interrupted' else moved.outcome end, 'worker', moved.worker,
        -- The subquery sees the row as it was before this statement.
        'due_at', (select before.run_at from job before where before.id = moved.id),
        -- The code and detail of a crash describe why the job is given up, so they do not apply to a requeue.
        'code', case when moved.outcome <> 'crashed' then moved.code end,
        'detail', case when moved.outcome <> 'crashed' then moved.detail end))
    from moved where moved.status in ('waiting', 'scheduled', 'available')
  )
  select coalesce(array_agg(id), '{}'), array_agg(id) filter (where finished_at is not null),
    bool_or(batch_id is not null and finished_at is not null),
    array_agg(id) filter (where status = 'available' and mailbox_limit is null),
    array_agg(distinct mailbox) filter (where mailbox_limit is not null),
    array_agg(id) filter (where finished_at is not null and settle is not null),
    array_agg(queue) filter (where status in ('scheduled', 'available')),
    array_agg(queue) filter (where status = 'waiting'),
    array_agg(queue) filter (where finished_at is not null)
  into ended, final, has_members, released, freed, to_settle, requeued_queues, waiting_queues, ended_queues from moved;
  if requeued_queues is not null then
    perform job_count_add(requeued_queues, 1, -1);
  end if;
  if waiting_queues is not null then
    perform job_count_add(waiting_queues, 0, -1, 1);
  end if;
  if ended_queues is not null then
    perform job_count_add(ended_queues, 0, -1);
  end if;
  if to_settle is not null then
    perform job_settle(to_settle);
  end if;
  if final is not null then
    perform webhook_jobs_ended(final);
  end if;
  if released is not null then
    perform job_announce(released);
  end if;
  -- Most deployments have no dependencies. The first check is then all that they cost.
  if has_members or exists (select from job_dependency) and exists (select from job_dependency where after_id = any(final) and not has_ended) then
    return query select job_release(final, locked => locked);
  end if;
  if freed is not null then
    perform job_deliver(array(select id from job_next(freed)));
  end if;
  return query select unnest(ended);
end $$;
