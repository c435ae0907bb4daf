-- Finds what no other function looks for and has it go on: jobs that are `sent` without a delivery in the queue, messages in
-- mailboxes of actors that do nothing, deliveries that are locked by no live worker's pool. The service never leaves such
-- rows behind by itself; a database that went back to an earlier moment, a deleted row or an interrupted repair by hand does.
-- What was sent within `patience` is left alone. Answers the jobs that it has sent.
create or replace function job_repair(patience interval) returns setof uuid language plpgsql as $$
declare
  lost uuid[];
  idle text[];
begin
  -- One at a time: all would find the same.
  if not pg_try_advisory_xact_lock(7236501147) then return; end if;

  perform graphile_worker.force_unlock_workers(array_agg(locked_by)) from (
    select distinct locked_by from graphile_worker._private_jobs
    where locked_by is not null and locked_at < now() - patience
      and not exists (select from worker_lease where locked_by = any(pool_ids))) orphaned
  having count(*) > 0;

  with due as (
    select id, name, delivery from job where status = 'sent' and greatest(created_at, run_at) < now() - patience
  ), carried as (
    select one ->> 0 as id, (one ->> 1)::integer as delivery
    from graphile_worker._private_jobs queued join graphile_worker._private_tasks task on task.id = queued.task_id
    cross join lateral json_array_elements(coalesce(queued.payload -> 'jobs',
      json_build_array(json_build_array(queued.payload -> 'id', queued.payload -> 'delivery')))) one
    -- Others may have work of their own in the same queue.
    where task.identifier in (select name from due)
  ), missing as (
    select id::text, delivery from due except select id, delivery from carried
  ), moved as (
    -- One that was claimed meanwhile is no longer `sent`.
    update job set delivery = job.delivery + 1 from missing
    where job.id = missing.id::uuid and job.delivery = missing.delivery and job.status = 'sent'
    returning job.id
  )
  select coalesce(array_agg(id), '{}') into lost from moved;

  -- From one actor to the next by the index, however many messages each has.
  with recursive mailbox as (
    (select actor from job where status = 'queued' and actor is not null order by actor limit 1)
    union all
    select (select job.actor from job where status = 'queued' and job.actor > mailbox.actor order by job.actor limit 1)
    from mailbox where mailbox.actor is not null
  )
  select array_agg(actor) into idle from mailbox
  where actor is not null and not exists (
    select from job live where live.actor = mailbox.actor and live.status in ('sent', 'running'));
  if idle is not null then
    perform pg_advisory_xact_lock(key) from (
      select distinct actor_lock_key(actor) as key from unnest(idle) actor order by 1) locks;
    -- Another look, by a statement of its own: what the locks waited for counts.
    lost := lost || job_send_heads(idle);
  end if;

  perform job_send(lost);
  return query select unnest(lost);
end $$;
