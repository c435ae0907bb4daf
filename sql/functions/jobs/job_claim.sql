-- Takes jobs for a lease: only those whose delivery is the current one. Answers what there is to run. A claim whose
-- answer was lost with its connection is repeated by the same lease and gets its jobs, as a new attempt. An event is stored of
-- every attempt but the first.
create or replace function job_claim(lease uuid, ids uuid[], deliveries integer[])
returns table (id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer,
  owner_id integer, actor text, request_id text, interruptions integer)
language sql
as $$
  with claimed as (
    update job set status = 'running', lease_id = lease, attempt = job.attempt + 1, reported = 0,
      tries = job.tries + case when job.status = 'sent' then 1 else 0 end,
      started_at = coalesce(job.started_at, now()), seq = job.seq + 1
    from unnest(ids, deliveries) as wanted(id, delivery)
    where job.id = wanted.id and job.delivery = wanted.delivery
      and (job.status || '' = 'sent' or (job.status || '' = 'running' and job.lease_id = lease))
    returning job.*
  ), event as (
    insert into job_event_row (job_id, seq, kind, data)
    select claimed.id, claimed.seq, 'status', jsonb_build_object('status', 'running', 'label', claimed.label,
      'current', claimed.progress_current, 'total', claimed.progress_total) from claimed where claimed.attempt > 1
  )
  select id, delivery, name, payload, attempt, tries, max_tries, owner_id, actor, request_id, interruptions from claimed
$$;
