-- Holds the lease of an HTTP worker and claims jobs for it, as JSON. A claim id that the lease has used already gets the jobs
-- of that claim which still run under it. The arguments are those of `worker_queue_access`, `worker_lease_hold` and
-- `worker_queue_claim`.
create or replace function worker_claim_take(queue_name text, caller integer, is_admin boolean, key_organization integer, lease uuid,
  claim uuid, worker_name text, worker_info jsonb, seconds integer, wait_seconds integer, wanted text[], most integer, most_bytes integer,
  dependency_bytes integer, suspect integer, max_interruptions integer, may_create boolean)
returns json language plpgsql
as $$
#variable_conflict use_column
declare
  q worker_queue;
  access text;
  lease_state text;
  found_ids uuid[];
  taken record;
begin
  select * into q from worker_queue where name = queue_name;
  access := case when found and worker_queue_is_active(q) then worker_queue_access(q, caller, is_admin, key_organization) end;
  if access is distinct from 'manage' or q.endpoint_url is not null then
    return json_build_object('outcome', case access when 'use' then 'forbidden' when 'manage' then 'pushed' else 'missing' end, 'now', iso(now()));
  end if;
  lease_state := worker_lease_hold(lease, queue_name, worker_name, worker_info, seconds, may_create);
  if lease_state in ('taken', 'full', 'gone') then
    return json_build_object('outcome', lease_state, 'now', iso(now()));
  end if;
  if claim is not null then
    -- A claim is repeated while the first one may still be under way.
    perform pg_advisory_xact_lock(hashtextextended('millrace.worker_claim:' || lease || claim, 0));
    select job_ids into found_ids from worker_claim where lease_id = lease and claim_id = claim;
  end if;
  if found_ids is not null then
    select json_agg(json_build_array(id, name, attempt, tries, max_tries, interruptions, owner_id, mailbox, mailbox_limit, request_id,
      payload::text, 0, trace_parent) order by ordinal)::text as claims, null::text as held, false as must_repeat into taken
    from job where id = any(found_ids) and lease_id = lease;
  else
    select claimed.claims, claimed.held, claimed.must_repeat into taken
    from worker_queue_claim(queue_name, lease, wanted, most, most_bytes, suspect, max_interruptions) claimed;
    if taken.claims is not null then
      found_ids := array(select (c ->> 0)::uuid from json_array_elements(taken.claims::json) c);
      if claim is not null then
        insert into worker_claim (lease_id, claim_id, job_ids) values (lease, claim, found_ids);
      end if;
      update worker_lease set expires_at = now() + make_interval(secs => seconds)
      where id = lease and (expires_at > now() + make_interval(secs => seconds + 1) or expires_at < now() + make_interval(secs => seconds / 2.0));
    else
      -- The claim of a worker without jobs keeps the lease until the wait ends.
      update worker_lease set expires_at = now() + make_interval(secs => wait_seconds + 5)
      where id = lease and expires_at < now() + make_interval(secs => wait_seconds + 2)
        and not exists (select from job where lease_id = lease and status = 'running');
    end if;
  end if;
  return json_build_object('outcome', 'ok', 'claims', taken.claims, 'held', taken.held, 'must_repeat', taken.must_repeat,
    'is_drained', lease_state = 'drained', 'now', iso(now()),
    'timeouts', (select json_object_agg(t.name, t.timeout_seconds) from worker_task t
      where t.queue = queue_name and t.timeout_seconds is not null
        and t.name in (select substr(job.name, length(queue_name) + 2) from job where id = any(found_ids))),
    'dependencies', (select json_object_agg(id, worker_dependencies(after, dependency_bytes)) from job
      where id = any(found_ids) and after is not null));
end $$;
