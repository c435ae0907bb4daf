-- Taking a staged job wrote its whole row anew, for most only to write it once more some milliseconds later, when it was
-- done: a quarter of all that such a job costs. A worker that takes many at once holds them now: one row for those of an
-- owner. A job that is held stays staged, attempt 0, until its end is written, as attempt 1; or, before anything else can be
-- said of it, that it runs. Only its holder can end a staged job, and nothing becomes staged again.

create table job_hold (
  id bigint generated always as identity,
  lease_id uuid not null,
  queue text not null,
  lane text not null,
  owner integer not null, -- 0: nobody
  ordinals int8multirange not null,
  taken_at timestamptz not null default now(),
  constraint job_hold_pkey primary key (id),
  constraint job_hold_ordinals_check check (not isempty(ordinals))
);
create index job_hold_staged_idx on job_hold (queue, lane, owner, upper(ordinals));
create index job_hold_lease_id_idx on job_hold (lease_id);

-- Locks staged jobs of a lane and answers with them: of each owner the oldest beyond its floor that nobody holds, shared out
-- evenly, at most of 100 owners.
create function job_pick(of_queue text, of_lane text, most integer, after_owner integer, owners integer[], floors bigint[])
returns job[]
language plpgsql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  picked job[];
  others int8multirange;
begin
  with line as (
    select known.owner, known.floor, holds.held from unnest(owners, floors) as known(owner, floor)
    cross join lateral (
      select from job where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) = known.owner and job.ordinal > known.floor
      order by job.ordinal limit 1) first
    cross join lateral (
      select range_agg(h.ordinals) as held from job_hold h
      where h.queue = of_queue and h.lane = of_lane and h.owner = known.owner and upper(h.ordinals) > known.floor) holds
    where known.owner > after_owner and (holds.held is null or exists (
      select from job where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) = known.owner and job.ordinal > known.floor and not job.ordinal <@ holds.held
      order by job.ordinal limit 1))
    order by known.owner limit 100
  ), share as (
    select line.*, greatest(1, (most + count(*) over () - 1) / count(*) over ()) as part from line
  )
  select array_agg(locked.job) into picked from (
    select staged.job from share cross join lateral (
      select job from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) = share.owner and job.ordinal > share.floor
        and (share.held is null or not job.ordinal <@ share.held)
      order by job.ordinal limit share.part for update skip locked) staged
    limit most) locked;
  if picked is null then return null; end if;

  -- A take that was committed after the look above and before a lock has left no trace in the row. This look sees its hold,
  -- since it comes after all locks.
  select range_agg(h.ordinals) into others from job_hold h
  where h.queue = of_queue and h.lane = of_lane
    and h.owner in (select distinct coalesce(p.owner_id, 0) from unnest(picked) p)
    and upper(h.ordinals) > (select min(p.ordinal) from unnest(picked) p);
  if others is not null then
    select array_agg(p) into picked from unnest(picked) p where not p.ordinal <@ others;
  end if;
  return picked;
end $$;

-- Owners who are not known and have staged jobs, each with a floor below its first. Between two known owners the index is
-- read from the one to the other, and nothing of their own.
create function job_unknown_owners(of_queue text, of_lane text, after_owner integer, owners integer[],
  out unknown integer[], out beyond bigint[])
language sql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
as $$
  with recursive gap as (
    select known.owner as low, lead(known.owner) over (order by known.owner) as high
    from (select after_owner as owner union select unnest(owners)) known where known.owner >= after_owner
  ), line as (
    select gap.high, first.owner, first.ordinal, 1 as n from gap cross join lateral (
      select coalesce(job.owner_id, 0) as owner, job.ordinal from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) > gap.low and coalesce(job.owner_id, 0) < coalesce(gap.high, 2147483647)
      order by coalesce(job.owner_id, 0), job.ordinal limit 1) first
    union all
    select line.high, next.owner, next.ordinal, line.n + 1 from line cross join lateral (
      select coalesce(job.owner_id, 0) as owner, job.ordinal from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) > line.owner and coalesce(job.owner_id, 0) < coalesce(line.high, 2147483647)
      order by coalesce(job.owner_id, 0), job.ordinal limit 1) next
    where line.n < 100
  )
  select coalesce(array_agg(owner), '{}'), coalesce(array_agg(ordinal - 1), '{}')
  from (select owner, ordinal from line limit 100) few
$$;

-- Takes staged jobs for a worker: of the owners known what lies beyond their floors, with `others` of all others, too. From
-- `hold_from` jobs an owner on they are held, fewer run at once. A row for each hold: its jobs in order, as JSON, each a list of
-- id, ordinal, attempt, tries, max_tries, delivery, owner (0: nobody), name, request and payload, which is a text of its own:
-- one value is read in a third of the time that rows take. Holds that are `spent` are over.
create function job_pull(lease uuid, of_queue text, of_lane text, most integer, after_owner integer,
  owners integer[], floors bigint[], others boolean, hold_from integer, spent bigint[])
returns table (hold bigint, held_at timestamptz, jobs text)
language plpgsql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  picked job[];
begin
  if cardinality(spent) > 0 then
    delete from job_hold where id = any(spent);
  end if;
  if others then
    select owners || o.unknown, floors || o.beyond into owners, floors
    from job_unknown_owners(of_queue, of_lane, after_owner, owners) o;
  end if;
  picked := job_pick(of_queue, of_lane, most, after_owner, owners, floors);
  if picked is null then return; end if;

  if cardinality(picked) >= hold_from * (select count(distinct coalesce(p.owner_id, 0)) from unnest(picked) p) then
    return query
    with mine as (
      select coalesce(p.owner_id, 0) as owner, range_agg(int8range(p.ordinal, p.ordinal, '[]')) as ordinals,
        json_agg(json_build_array(p.id, p.ordinal, 1, 1, p.max_tries, 0, coalesce(p.owner_id, 0), p.name, p.request_id,
          p.payload::text) order by p.ordinal)::text as jobs
      from unnest(picked) p group by 1
    ), held as (
      insert into job_hold (lease_id, queue, lane, owner, ordinals)
      select lease, of_queue, of_lane, owner, ordinals from mine returning id, owner, taken_at
    )
    select held.id, held.taken_at, mine.jobs from mine join held on held.owner = mine.owner;
  else
    return query
    with taken as (
      update job set status = 'running', lease_id = lease, attempt = job.attempt + 1, reported = 0, tries = job.tries + 1,
        started_at = coalesce(job.started_at, now()), seq = job.seq + 1
      from unnest(picked) p where job.id = p.id and job.status || '' = 'queued'
      returning job.*
    )
    select null::bigint, null::timestamptz, json_agg(json_build_array(t.id, t.ordinal, t.attempt, t.tries, t.max_tries,
      t.delivery, coalesce(t.owner_id, 0), t.name, t.request_id, t.payload::text) order by t.ordinal)::text
    from taken t having count(*) > 0;
  end if;
end $$;

-- Writes that jobs run which are held, whatever is said of them next; others are left as they are. A job whose attempt has
-- its fence up can't be written: either this waits for it, or passes it over and answers with it.
create function job_begin(ids uuid[], waits boolean)
returns setof uuid
language plpgsql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  locked uuid[];
begin
  -- A take under way has its rows locked: whether it holds them is seen after it.
  if waits then
    select array_agg(id) into locked from (
      select id from job where id = any(ids) and job.status || '' = 'queued' and job.actor is null order by id for update) mine;
  else
    select array_agg(id) into locked from (
      select id from job where id = any(ids) and job.status || '' = 'queued' and job.actor is null for update skip locked) mine;
    return query select id from job
      where id = any(ids) and job.status || '' = 'queued' and job.actor is null and id <> all(coalesce(locked, '{}'));
  end if;
  update job set status = 'running', lease_id = h.lease_id, attempt = job.attempt + 1, reported = 0, tries = job.tries + 1,
    started_at = h.taken_at, seq = job.seq + 1
  from unnest(locked) as given(id) join job staged on staged.id = given.id
  cross join lateral (
    select * from job_hold where job_hold.queue = staged.queue and job_hold.lane = staged.lane
      and job_hold.owner = coalesce(staged.owner_id, 0) and upper(job_hold.ordinals) > staged.ordinal
      and job_hold.ordinals @> staged.ordinal) h
  where job.id = given.id;
end $$;

-- As before, of jobs that are held, too: `held` says which of the moments in `since` each is held from, 0: it is not. What
-- actors they are of is said by the caller, who knows it: looking it up took as long as the lock.
create function job_done(ids uuid[], attempts integer[], results jsonb, held integer[], since timestamptz[], actors text[])
returns setof uuid
language plpgsql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  ended uuid[];
  idle text[];
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
    returning job.id, job.actor
  )
  select coalesce(array_agg(id), '{}'), array_agg(actor) filter (where actor is not null) into ended, idle from moved;

  if idle is not null then
    if not idle <@ actors then
      raise exception 'job_done was not told of all actors';
    end if;
    perform job_send(job_send_heads(idle));
  end if;
  if cardinality(ended) < cardinality(ids) then
    return query select id from unnest(ids) id where id <> all(ended);
  end if;
end $$;

-- As before: nothing is held.
create or replace function job_done(ids uuid[], attempts integer[], results jsonb)
returns setof uuid
language sql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
  select job_done(ids, attempts, results, array_fill(0, array[cardinality(ids)]), '{}',
    array(select job.actor from job where job.id = any(ids) and job.actor is not null))
$$;

-- As before, but what others hold is theirs.
create or replace function job_take_known(lease uuid, of_queue text, of_lane text, most integer, after_owner integer,
  owners integer[], floors bigint[])
returns table (id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer,
  owner_id integer, actor text, request_id text, ordinal bigint)
language plpgsql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  picked job[] := job_pick(of_queue, of_lane, most, after_owner, owners, floors);
begin
  return query
  with taken as (
    update job set status = 'running', lease_id = lease, attempt = job.attempt + 1, reported = 0, tries = job.tries + 1,
      started_at = coalesce(job.started_at, now()), seq = job.seq + 1
    from unnest(picked) p where job.id = p.id and job.status || '' = 'queued'
    returning job.*
  )
  select t.id, t.delivery, t.name, t.payload, t.attempt, t.tries, t.max_tries, t.owner_id, t.actor, t.request_id, t.ordinal
  from taken t order by t.ordinal;
end $$;

create or replace function job_take(lease uuid, of_queue text, of_lane text, most integer, after_owner integer,
  owners integer[], floors bigint[])
returns table (id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer,
  owner_id integer, actor text, request_id text, ordinal bigint)
language sql
as $$
  select taken.* from job_unknown_owners(of_queue, of_lane, after_owner, job_take.owners) others
  cross join lateral job_take_known(lease, of_queue, of_lane, most, after_owner, job_take.owners || others.unknown,
    job_take.floors || others.beyond) taken
$$;

-- As before; a job that is held runs, and is only asked to end.
create or replace function job_cancel(job_id uuid)
returns boolean
language plpgsql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  found_actor text;
  cancelled_actor text;
begin
  select actor into found_actor from job where id = job_cancel.job_id;
  if not found then return false; end if;
  if found_actor is not null then
    perform pg_advisory_xact_lock(actor_lock_key(found_actor));
  else
    perform job_begin(array[job_cancel.job_id], true);
  end if;
  with moved as (
    update job set
      status = case when status = 'running' then status else 'cancelled' end,
      cancel_requested_at = coalesce(cancel_requested_at, now()),
      finished_at = case when status = 'running' then null else now() end,
      delivery = delivery + case when status = 'running' then 0 else 1 end,
      seq = seq + case when status = 'running' then 0 else 1 end
    where id = job_cancel.job_id and status in ('queued', 'sent', 'running')
    returning status, actor
  )
  select actor into cancelled_actor from moved where status = 'cancelled';
  if cancelled_actor is not null then
    perform job_send(job_send_heads(array[cancelled_actor]));
  end if;
  return true;
end $$;

-- As before; what a worker held that is gone may have begun, and its holds go with it.
create or replace function job_recover(grace interval, loss_limit integer)
returns setof uuid
language plpgsql
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  dead_pools text[];
  orphans bigint[];
  lost jsonb;
begin
  if now() - pg_postmaster_start_time() < grace then return; end if;
  if not exists (select from worker_lease where expires_at < now())
     and not exists (select from job where status = 'running'
       and not exists (select from worker_lease where worker_lease.id = job.lease_id))
     and not exists (select from job_hold h where not exists (select from worker_lease where worker_lease.id = h.lease_id)) then
    return;
  end if;
  with dead as (delete from worker_lease where expires_at < now() returning pool_ids)
  select coalesce(array_agg(pool), '{}') into dead_pools from dead, unnest(pool_ids) pool;
  if cardinality(dead_pools) > 0 then
    perform graphile_worker.force_unlock_workers(dead_pools);
  end if;
  select array_agg(id) into orphans from (
    select h.id from job_hold h where not exists (select from worker_lease where worker_lease.id = h.lease_id)
    for update skip locked) h;
  if orphans is not null then
    perform job_begin(array(
      select job.id from job_hold h cross join lateral unnest(h.ordinals) part
      cross join lateral (
        select id from job where job.queue = h.queue and job.lane = h.lane and job.status = 'queued' and job.actor is null
          and coalesce(job.owner_id, 0) = h.owner and job.ordinal >= lower(part) and job.ordinal < upper(part)) job
      where h.id = any(orphans)), true);
    delete from job_hold where id = any(orphans);
  end if;
  select jsonb_agg(jsonb_build_object('id', id, 'attempt', attempt, 'outcome', 'lost')) into lost
  from job where status = 'running' and not exists (select from worker_lease where worker_lease.id = job.lease_id);
  if lost is not null then
    return query select job_finish(lost, loss_limit);
  end if;
end $$;

-- Whether an attempt is the running one of its job, and keeps it so until the commit: a take-over waits for it.
create function job_fence(job_id uuid, of_attempt integer)
returns boolean
language sql
as $$
  select true from job where id = job_id
    and (attempt = of_attempt and status = 'running'
      or attempt = 0 and of_attempt = 1 and status = 'queued' and actor is null) for share
$$;

-- As before, of held jobs, too.
create or replace procedure document_pages_store(inout stored integer, p_job uuid, p_attempt integer, p_document integer,
  numbers integer[], statuses text[], methods text[], models text[], details text[], texts text[], images bytea[],
  widths integer[], heights integer[], givings_up boolean[])
language plpgsql as $$
declare
  last constant integer := cardinality(numbers);
  vectors constant tsvector[] := array(select page_vector(text) from unnest(texts) with ordinality given(text, n) order by n);
begin
  perform search_words_of(vectors);
  for i in 1 .. last loop
    if i < last then
      perform set_config('synchronous_commit', 'off', true);
    end if;
    -- Held until the commit: a take-over waits for it.
    exit when job_fence(p_job, p_attempt) is not true;
    insert into document_page (document_id, page_number, status, method, model, detail, text, search, image, width, height,
      job_id, given_up)
    values (p_document, numbers[i], statuses[i], methods[i], models[i], details[i], texts[i], vectors[i],
      nullif(images[i], ''), widths[i], heights[i], p_job, givings_up[i])
    on conflict (document_id, page_number) do update set
      status = excluded.status, method = excluded.method, model = excluded.model, detail = excluded.detail,
      text = excluded.text, search = excluded.search, image = excluded.image, width = excluded.width,
      height = excluded.height, job_id = excluded.job_id, given_up = excluded.given_up, updated_at = now();
    commit;
    stored := i;
  end loop;
end
$$;

