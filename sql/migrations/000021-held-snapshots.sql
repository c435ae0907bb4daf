-- While somebody holds a snapshot open, what a job leaves dead in the indexes of its past states stays there, and whoever
-- looks for the first that waits reads all of it: after a minute at full speed a seventh of the jobs got through. So
-- whoever knows where it was goes on from there, and looks at the whole only for a small part of its time.

-- Takes staged jobs of a queue and lane for a lease, at most `most`, of owners of whom it is known up to where their jobs
-- have been taken: the same number for each of up to 100 after `after_owner`, the oldest first. Answers what there is to run.
-- Without bitmaps: where nothing is known of the table they are thought to be cheap, and sort all that waits.
create function job_take_known(lease uuid, of_queue text, of_lane text, most integer, after_owner integer,
  owners integer[], floors bigint[])
returns table (id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer,
  owner_id integer, actor text, request_id text)
language sql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
  set enable_bitmapscan = off set plan_cache_mode = force_generic_plan
as $$
  with line as (
    select known.owner, known.floor from unnest(owners, floors) as known(owner, floor)
    cross join lateral (
      select from job where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) = known.owner and job.ordinal > known.floor
      order by job.ordinal limit 1) first
    where known.owner > after_owner
    order by known.owner limit 100
  ), share as (
    select owner, floor, greatest(1, (most + count(*) over () - 1) / count(*) over ()) as part from line
  ), picked as (
    select staged.id from share cross join lateral (
      select job.id from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) = share.owner and job.ordinal > share.floor
      order by job.ordinal limit share.part for update skip locked) staged
    limit most
  ), taken as (
    update job set status = 'running', lease_id = lease, attempt = job.attempt + 1, reported = 0, tries = job.tries + 1,
      started_at = coalesce(job.started_at, now()), seq = job.seq + 1
    from picked where job.id = picked.id and job.status || '' = 'queued'
    returning job.*
  ), event as (
    insert into job_event (job_id, seq, kind, data)
    select taken.id, taken.seq, 'status', jsonb_build_object('status', 'running', 'label', taken.label,
      'current', taken.progress_current, 'total', taken.progress_total) from taken
  )
  select id, delivery, name, payload, attempt, tries, max_tries, owner_id, actor, request_id from taken order by ordinal
$$;

-- As before, and by the other: it only has to find out who has staged jobs, and where they begin.
create or replace function job_take(lease uuid, of_queue text, of_lane text, most integer, after_owner integer)
returns table (id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer,
  owner_id integer, actor text, request_id text)
language sql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
  set enable_bitmapscan = off set plan_cache_mode = force_generic_plan
as $$
  with recursive line as (
    (select coalesce(job.owner_id, 0) as owner, job.ordinal as first, 1 as n from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) > after_owner
      order by coalesce(job.owner_id, 0), job.ordinal limit 1)
    union all
    select next.owner, next.first, line.n + 1 from line cross join lateral (
      select coalesce(job.owner_id, 0) as owner, job.ordinal as first from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) > line.owner
      order by coalesce(job.owner_id, 0), job.ordinal limit 1) next
    where line.n < 100
  )
  select taken.* from (select array_agg(owner) as owners, array_agg(first - 1) as floors from line) known
  cross join lateral job_take_known(lease, of_queue, of_lane, most, after_owner, known.owners, known.floors) taken
$$;

-- What of these runs under a lease, as `job_running` has it.
create function job_running_of(lease uuid, ids uuid[]) returns json language sql stable
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
  select coalesce(json_agg(json_build_object('id', job.id, 'attempt', job.attempt,
    'cancel', job.cancel_requested_at is not null)), '[]') from job
  where job.id = any(ids) and job.lease_id = lease and job.status || '' = 'running'
$$;
