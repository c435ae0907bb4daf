-- Makes jobs that this transaction has added wait for others, see `after` of job_enqueue. A delivery that it has sent
-- already will find nothing.
create or replace function job_hold(ids uuid[], after uuid[], after_outcome text) returns void language plpgsql
as $$
#variable_conflict use_column
declare
  queues text[];
  locked text[];
begin
  with held as (
    update job set status = 'waiting', after = job_hold.after, after_outcome = job_hold.after_outcome, waits_for = cardinality(job_hold.after)
    where id = any(ids) and status || '' in ('scheduled', 'available') and attempt = 0
    returning queue, mailbox, mailbox_limit
  )
  select array_agg(queue), coalesce(array_agg(mailbox) filter (where mailbox_limit is not null), '{}') into queues, locked from held;
  perform job_count_add(queues, -1, 0, 1);
  perform job_link(ids, locked, true);
end $$;
