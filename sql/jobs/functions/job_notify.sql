-- Notifies the streams of changed jobs. A payload has lines (see job_event_line), so that subscribers need not read them. They
-- are the events of each job after its seq in `afters`, or its last event if that is null. A job without events has a line
-- with its state. A line that is too long for a notification is only the job's id, and so are all lines of many jobs. For
-- more jobs than subscribers would look for one by one, the payload is `*`.
create or replace function job_notify(ids uuid[], afters integer[] default null) returns void language plpgsql as $$
begin
  if cardinality(ids) > 10000 then
    perform pg_notify('job_events', '*');
  elsif cardinality(ids) > 100 then
    perform job_notify_ids(ids);
  else
    -- NOTIFY allows 7999 bytes. Beyond the first lines, reading costs less than sending them to every process.
    perform pg_notify('job_events', string_agg(line, E'\n' order by n)) from (
      select n, line, sum(octet_length(line) + 1) over (order by n) / 4000 as part from (
        select n, case when octet_length(line) > 3900 or sum(octet_length(line)) over (order by n) > 40000 then id::text else line end as line
        from (
          select row_number() over (order by changed.n, event.seq) as n, changed.id, case when job.id is null then changed.id::text
              when event.seq is null then job_state_line(job) else job_event_line(job, event.seq, event.kind, event.data) end as line
          from unnest(ids, afters) with ordinality as changed (id, after, n)
          left join job on job.id = changed.id
          -- The limit makes the planner read the events of each job by its key.
          left join lateral (select e.seq, e.kind, e.data from job_event e
            where e.job_id = job.id and e.seq > coalesce(changed.after, job.seq - 1) order by e.seq limit 1000) event on true) found) short) parted
    group by part order by part;
  end if;
end $$;
