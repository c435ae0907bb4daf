-- Takes staged jobs for a worker: of the owners known what lies beyond their floors, with `others` of all others, too. From
-- `hold_from` jobs an owner on they are held, fewer run at once. A row for each hold: its jobs in order, as JSON, each a list of
-- id, ordinal, attempt, tries, max_tries, delivery, owner (0: nobody), name, request and payload, which is a text of its own:
-- one value is read in a third of the time that rows take. Holds that are `spent` are over.
create or replace function job_pull(lease uuid, of_queue text, of_lane text, most integer, after_owner integer,
  owners integer[], floors bigint[], others boolean, hold_from integer, spent bigint[])
returns table (hold bigint, held_at timestamptz, jobs text)
language plpgsql
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
