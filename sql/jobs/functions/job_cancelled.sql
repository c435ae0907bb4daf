-- Counts, tells and settles jobs that this transaction has cancelled while they waited for others.
create or replace function job_cancelled(ids uuid[]) returns void language plpgsql
as $$
declare
  to_settle uuid[];
begin
  if cardinality(ids) = 0 then return; end if;
  perform job_count_add(array(select queue from job where id = any(ids)), 0, 0, -1);
  perform webhook_jobs_ended(ids);
  to_settle := array(select id from job where id = any(ids) and settle is not null);
  if cardinality(to_settle) > 0 then
    perform job_settle(to_settle);
  end if;
end $$;
