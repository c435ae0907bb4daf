-- Ends attempts that are done. Of jobs that are held, too: `held` says which of the moments in `since` each is held from, 0: it
-- is not. What actors they are of is said by the caller, who knows it: looking it up took as long as the lock.
create or replace function job_done(ids uuid[], attempts integer[], results jsonb, held integer[], since timestamptz[], actors text[])
returns setof uuid
language plpgsql
as $$
#variable_conflict use_column
declare
  ended uuid[];
  idle text[];
  settled uuid[];
begin
  if cardinality(actors) > 0 then
    perform pg_advisory_xact_lock(key) from (
      select distinct actor_lock_key(actor) as key from unnest(actors) actor order by 1) locks;
  end if;

  with moved as (
    update job set status = 'done', result = nullif(e.result, 'null'), finished_at = now(), lease_id = null,
      attempt = e.attempt, delivery = job.delivery + 1,
      -- Of one that is held, what it began with is said only now.
      started_at = case when job.lease_id is null then since[e.held] else job.started_at end,
      seq = job.seq + case when job.lease_id is null then 2 else 1 end,
      tries = job.tries + case when job.lease_id is null then 1 else 0 end
    from rows from (unnest(ids), unnest(attempts), jsonb_array_elements(results), unnest(held))
      as e(id, attempt, result, held)
    where job.id = e.id and (job.attempt = e.attempt and job.lease_id is not null
      or e.held > 0 and job.attempt = e.attempt - 1 and job.status || '' = 'queued' and job.actor is null)
    returning job.id, job.actor, job.settle
  )
  select coalesce(array_agg(id), '{}'), array_agg(actor) filter (where actor is not null),
    array_agg(id) filter (where settle is not null)
  into ended, idle, settled from moved;

  if idle is not null then
    if not idle <@ actors then
      raise exception 'job_done was not told of all actors';
    end if;
    perform job_send(job_send_heads(idle));
  end if;
  if settled is not null then
    perform job_settle(settled);
  end if;
  if cardinality(ended) < cardinality(ids) then
    return query select id from unnest(ids) id where id <> all(ended);
  end if;
end $$;
