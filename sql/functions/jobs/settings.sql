-- How the planner goes about the functions of the ledger.
--
-- They find rows by their keys alone, whatever the statistics say: those are mostly of moments when nothing waits or runs, and a
-- connection keeps the plans that it made then. A flood made every claim of its first minute read the whole table, and a partial
-- index that is said to be nearly empty was read for each entry of a batch (47 ms for 500 ends, 4 ms now). So no joins but by
-- index, nothing read from end to end and kept, and no table from end to end; and in the functions a row that was found by its id is asked for its state in words that
-- no index has: a lease for running (job_lease_check), none for waiting, and `status || ''` where neither will do. Of lists that
-- are read in order, bitmaps would sort all that waits. With plans that hang on no value there is nothing to plan anew: half the
-- time of a call for one job was planning.
do $$
declare
  called regproc;
begin
  foreach called in array array[
    'job_behind',
    'job_cancel',
    'job_claim',
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
