-- Whoever knows some owners need not look at theirs again to find others: what these left dead in the index while somebody
-- holds a snapshot open is all that ever was, and looking at it took a twentieth of the time, in which nothing was taken.

-- Takes staged jobs as `job_take_known` does, of the owners known and of others that have some. Between two known owners
-- the index is read from the one to the other, and nothing of their own.
create function job_take(lease uuid, of_queue text, of_lane text, most integer, after_owner integer,
  owners integer[], floors bigint[])
returns table (id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer,
  owner_id integer, actor text, request_id text, ordinal bigint)
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
  select taken.* from (
    select coalesce(array_agg(owner), '{}') as owners, coalesce(array_agg(ordinal - 1), '{}') as floors
    from (select owner, ordinal from line limit 100) few
  ) unknown cross join lateral job_take_known(lease, of_queue, of_lane, most, after_owner,
    job_take.owners || unknown.owners, job_take.floors || unknown.floors) taken
$$;

-- As before: nobody is known.
create or replace function job_take(lease uuid, of_queue text, of_lane text, most integer, after_owner integer)
returns table (id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer,
  owner_id integer, actor text, request_id text, ordinal bigint)
language sql
as $$
  select * from job_take(lease, of_queue, of_lane, most, after_owner, '{}', '{}')
$$;
