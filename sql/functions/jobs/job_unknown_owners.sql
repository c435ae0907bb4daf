-- Owners who are not known and have staged jobs, each with a floor below its first. Between two known owners the index is
-- read from the one to the other, and nothing of their own.
create or replace function job_unknown_owners(of_queue text, of_lane text, after_owner integer, owners integer[],
  out unknown integer[], out beyond bigint[])
language sql
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
