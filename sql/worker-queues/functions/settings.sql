-- Planner settings for the functions that claims and reports call, for the reasons in `jobs/functions/settings.sql`.
do $$
declare
  called regproc;
begin
  foreach called in array array[
    'worker_claim_take',
    'worker_dependencies',
    'worker_lease_end',
    'worker_lease_hold',
    'worker_lease_renew',
    'worker_queue_claim'
  ]::regproc[] loop
    execute format('alter function %s(%s) set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off set enable_material = off '
      'set enable_bitmapscan = off set plan_cache_mode = force_generic_plan', called, pg_get_function_identity_arguments(called));
  end loop;
end $$;
