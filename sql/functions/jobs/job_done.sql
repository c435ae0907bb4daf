-- Ends successful attempts. The caller passes the limited mailboxes of their jobs, because looking them up costs as
-- much as locking them. Returns the ids of stale attempts.
create or replace function job_done(ids uuid[], attempts integer[], results jsonb, limited text[])
returns setof uuid
language plpgsql
as $$
#variable_conflict use_column
declare
  ended uuid[];
  freed text[];
  to_settle uuid[];
  queues text[];
begin
  if cardinality(limited) > 0 then
    perform mailbox_lock(limited);
  end if;

  with finished as (
    update job set status = 'done', result = nullif(e.result, 'null'), finished_at = now(), lease_id = null, seq = job.seq + 1
    from rows from (unnest(ids), unnest(attempts), jsonb_array_elements(results)) as e(id, attempt, result)
    where job.id = e.id and job.attempt = e.attempt and job.lease_id is not null
    returning job.id, job.queue, case when job.mailbox_limit is not null then job.mailbox end as mailbox, job.settle
  )
  select coalesce(array_agg(id), '{}'), array_agg(mailbox) filter (where mailbox is not null),
    array_agg(id) filter (where settle is not null), array_agg(queue)
  into ended, freed, to_settle, queues from finished;
  perform job_count_add(queues, 0, -1);

  perform webhook_jobs_ended(ended);

  if freed is not null then
    if not freed <@ limited then
      raise exception 'job_done needs all limited mailboxes of these jobs';
    end if;
    perform job_send_next(array(select distinct unnest(freed)));
  end if;
  if to_settle is not null then
    perform job_settle(to_settle);
  end if;
  if cardinality(ended) < cardinality(ids) then
    return query select id from unnest(ids) id where id <> all(ended);
  end if;
end $$;
