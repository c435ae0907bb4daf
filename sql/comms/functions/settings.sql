-- Planner settings for the functions that handle events and settle messages. These functions look up rows by key only,
-- but connections cache plans from when the tables were small.
do $$
declare
  called regproc;
begin
  foreach called in array array['comms_events_match', 'comms_events_apply', 'comms_send_cancel', 'comms_send_settle']::regproc[] loop
    execute format('alter function %s(%s) set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off', called,
      pg_get_function_identity_arguments(called));
  end loop;
end $$;
