-- Closes an open batch, which then waits only for its members. Returns the ids of the jobs whose state has changed.
create or replace function job_close(batch uuid) returns setof uuid language plpgsql
as $$
begin
  update job set payload = payload || '{"is_open": false}'
  where id = batch and status || '' = 'waiting' and payload ->> 'is_open' = 'true' and cancel_requested_at is null;
  if found then
    return query select job_release('{}', closed => array[batch]);
  end if;
end $$;
