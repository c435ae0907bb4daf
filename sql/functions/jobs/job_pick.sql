-- Locks staged jobs of a lane and answers with them: of each owner the oldest beyond its floor that nobody holds, shared out
-- evenly, at most of 100 owners.
create or replace function job_pick(of_queue text, of_lane text, most integer, after_owner integer, owners integer[], floors bigint[])
returns job[]
language plpgsql
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
