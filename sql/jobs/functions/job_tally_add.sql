-- Adds counts to the current spans, which match `jobs/tallies.ts`. Inserts in key order, so that two workers never
-- deadlock.
create or replace function job_tally_add(entries jsonb) returns void language sql as $$
  insert into job_tally as t (span, starts_at, queue, name, outcome, attempts, run_seconds, wait_seconds, runs, waits)
  select span, case span when 0 then 'epoch' else date_bin(make_interval(secs => span), now(), 'epoch') end,
    e.queue, e.name, e.outcome, e.attempts, e.run_seconds, e.wait_seconds, e.runs, e.waits
  from unnest(array[0, 10, 60, 1200, 7200]) span cross join jsonb_to_recordset(entries) as e(queue text, name text, outcome text,
    attempts bigint, run_seconds float8, wait_seconds float8, runs bigint[], waits bigint[])
  order by span, e.queue collate "C", e.name collate "C", e.outcome collate "C"
  on conflict on constraint job_tally_pkey do update set attempts = t.attempts + excluded.attempts,
    run_seconds = t.run_seconds + excluded.run_seconds, wait_seconds = t.wait_seconds + excluded.wait_seconds,
    runs = array_sum(t.runs, excluded.runs), waits = array_sum(t.waits, excluded.waits)
$$;
