-- Planner settings for the functions of the ledger.
--
-- These find rows only by their keys, whatever the statistics say: those are mostly from moments when nothing is queued
-- or running, and a connection keeps the plans that it made then. In a flood, every claim of the first minute read the
-- whole table, and a partial index that the statistics called nearly empty was read for each entry of a batch (47 ms
-- for 500 ends, 4 ms now). So joins go by index only, and sequential scans and materialized results are off. The
-- functions also test the state of a row that they find by its id with conditions that no index has: a lease for
-- running (job_lease_check), none for queued, and `status || ''` where neither will do. For lists that are read in
-- order, a bitmap scan would sort everything that is queued. Generic plans need no replanning: planning took half the
-- time of a call for one job.
do $$
declare
  called regproc;
begin
  foreach called in array array[
    'job_behind',
    'job_cancel',
    'job_claim',
    'job_counted',
    'job_deliver',
    'job_done',
    'job_enqueue',
    'job_finish',
    'job_progress',
    'job_recover',
    'job_running',
    'job_running_of',
    'job_send',
    'job_send_next',
    'job_settle'
  ]::regproc[] loop
    execute format('alter function %s(%s) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set enable_material = off '
      'set plan_cache_mode = force_generic_plan', called, pg_get_function_identity_arguments(called));
  end loop;
  foreach called in array array[
    'job_behind',
    'job_claim',
    'job_enqueue',
    'job_send_next'
  ]::regproc[] loop
    execute format('alter function %s(%s) set enable_bitmapscan = off', called, pg_get_function_identity_arguments(called));
  end loop;
end $$;
