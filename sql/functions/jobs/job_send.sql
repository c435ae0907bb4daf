-- Sends a delivery for each of these queued jobs: from its ordinal up to the one at the same place in `lasts`, due when
-- the job is, but not before `pause` has passed.
create or replace function job_send(ids uuid[], lasts bigint[] default null, pause interval default '0') returns void
language plpgsql
as $$
begin
  if coalesce(cardinality(ids), 0) = 0 then return; end if;
  perform job_deliver(array_agg(job.name), array_agg(job.mailbox), array_agg(job.mailbox_limit), array_agg(job.owner_id),
    array_agg(job.ordinal), array_agg(sent.last), array_agg(greatest(job.run_at, now() + pause)))
  from unnest(ids, lasts) as sent(id, last)
  cross join lateral (select * from job where job.id = sent.id and job.status || '' = 'queued' offset 0) job;
end $$;
