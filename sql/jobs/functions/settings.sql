-- Planner settings for the ledger functions.
--
-- These functions find rows only by key. Statistics mislead the planner, because most are from moments when nothing is
-- queued or running, and a connection keeps the plans that it made then. In a burst of jobs, every claim of the first
-- minute read the whole table. Each entry of a batch scanned a partial index that the statistics called nearly empty
-- (47 ms for 500 ends, 4 ms with these settings). So joins use only indexes, without sequential scans or materialized
-- results.
--
-- To test the state of a row found by id, the functions use conditions that no index has. A running job has a lease
-- (job_lease_check) and a queued job has none. Where neither test works, they compare `status || ''`. Bitmap scans are
-- disabled, because they would sort all queued jobs for lists that are read in order. Generic plans need no replanning,
-- which took half the time of a call for one job.
do $$
declare
  called regproc;
begin
  foreach called in array array[
    'job_announce',
    'job_cancel',
    'job_cancel_dependants',
    'job_cancelled',
    'job_change',
    'job_claim',
    'job_close',
    'job_count_add',
    'job_delete_traces',
    'job_deliver',
    'job_enqueue',
    'job_events_after',
    'job_finish',
    'job_hold',
    'job_link',
    'job_next',
    'job_notify',
    'job_progress',
    'job_release',
    'job_rescue_running',
    'job_running',
    'job_schedule',
    'job_settle',
    'job_states',
    'job_store_report'
  ]::regproc[] loop
    execute format('alter function %s(%s) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set enable_material = off '
      'set plan_cache_mode = force_generic_plan', called, pg_get_function_identity_arguments(called));
  end loop;
  foreach called in array array[
    'job_claim',
    'job_enqueue',
    'job_next',
    'job_schedule'
  ]::regproc[] loop
    execute format('alter function %s(%s) set enable_bitmapscan = off', called, pg_get_function_identity_arguments(called));
  end loop;
end $$;
