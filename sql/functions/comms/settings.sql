-- Planner settings for the functions of events: they find rows by keys only, with plans that connections keep from when
-- tables were small.
do $$
declare
  called regproc;
begin
  foreach called in array array['comms_events_of', 'comms_events_apply']::regproc[] loop
    execute format('alter function %s(jsonb) set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off', called);
  end loop;
end $$;
