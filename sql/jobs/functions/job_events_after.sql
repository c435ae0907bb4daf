-- Returns the events of each job after its number in `afters` as lines (see job_event_line), at most `most` of a job. In
-- a plain statement, the planner would make a new plan for each array.
create or replace function job_events_after(ids uuid[], afters integer[], most integer) returns setof text language plpgsql stable as $$
begin
  return query select job_event_line(job, e.seq, e.kind, e.data)
  from unnest(ids, afters) as wanted(id, after)
  join job on job.id = wanted.id cross join lateral (
    select event.seq, event.kind, event.data from job_event event where event.job_id = wanted.id and event.seq > wanted.after
    order by event.seq limit most) e
  order by job.id, e.seq;
end $$;
