-- Releases the jobs of an HTTP worker's lease and deletes the lease. Claims share the lock of its row, so none is under way. Returns
-- the lease as `worker_lease_renew` does; null if the caller may not use it.
create or replace function worker_lease_end(lease uuid, caller integer, is_admin boolean, key_organization integer,
  suspect integer, max_interruptions integer)
returns json language plpgsql
as $$
declare
  held json;
begin
  perform from worker_lease where id = lease for update;
  held := worker_lease_renew(lease, caller, is_admin, key_organization, null, null);
  if held is null then return null; end if;
  if json_array_length(held -> 'jobs') > 0 then
    perform job_finish((select jsonb_agg(jsonb_build_object('id', j ->> 'id', 'attempt', (j ->> 'attempt')::integer, 'outcome', 'release'))
      from json_array_elements(held -> 'jobs') j), suspect, max_interruptions);
  end if;
  delete from worker_lease where id = lease;
  return held;
end $$;
