-- Inserts the lease of an HTTP worker, or renews it if less than half of its time is left. Returns `held`, or `drained` if an
-- admin has drained the worker. Returns `taken` if the id belongs to another queue, and `full` if the queue has too many.
-- Returns `gone` for a missing lease unless it `may_create` it. The lease stays until the commit.
create or replace function worker_lease_hold(lease uuid, queue_name text, worker_name text, worker_info jsonb, seconds integer, may_create boolean)
returns text language plpgsql
as $$
declare
  held worker_lease;
begin
  select * into held from worker_lease where id = lease for key share;
  if not found then
    if not may_create then return 'gone'; end if;
    if (select count(*) from (select from worker_lease where queue = queue_name limit 10000) leases) >= 10000 then
      return 'full';
    end if;
    insert into worker_lease (id, name, queues, queue, info, ttl_seconds, expires_at)
    values (lease, worker_name, array[queue_name], queue_name, worker_info, seconds, now() + make_interval(secs => seconds))
    on conflict on constraint worker_lease_pkey do nothing;
    -- Another claim may have been faster, or may have another queue.
    return case when exists (select from worker_lease where id = lease and queue = queue_name for key share) then 'held' else 'taken' end;
  end if;
  if held.queue is distinct from queue_name then
    return 'taken';
  end if;
  if held.expires_at < now() + make_interval(secs => seconds / 2.0) or held.name <> worker_name
    or held.info is distinct from worker_info or held.ttl_seconds <> seconds then
    update worker_lease set ttl_seconds = seconds, name = worker_name, info = worker_info,
      expires_at = greatest(expires_at, now() + make_interval(secs => seconds))
    where id = lease;
    delete from worker_claim where lease_id = lease and created_at < now() - interval '2 minutes';
  end if;
  return case when held.drained_at is null then 'held' else 'drained' end;
end $$;
