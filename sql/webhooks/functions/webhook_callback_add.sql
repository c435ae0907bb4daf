-- Registers a URL to notify when a job of an account ends. Notifies it immediately if the job has already ended. A
-- request that joins a job may name another URL than the first one.
create or replace function webhook_callback_add(job_id uuid, account integer, url text, host text, key uuid, secret text) returns void language plpgsql as $$
#variable_conflict use_column
declare
  callback_endpoint bigint;
  found_job job;
begin
  insert into webhook_endpoint (account_id, events, secret) values (account, '{}', webhook_callback_add.secret)
  on conflict (account_id) where url is null and deleted_at is null do nothing;
  select e.id into callback_endpoint from webhook_endpoint e where e.account_id = account and e.url is null and e.deleted_at is null;
  -- The lock delays the job's end until this commits, so that the end sees the row.
  select * into found_job from job where job.id = webhook_callback_add.job_id for share;
  if found_job.finished_at is null then
    insert into job_callback (job_id, endpoint_id, url, host, api_key_id)
    values (webhook_callback_add.job_id, callback_endpoint, webhook_callback_add.url, webhook_callback_add.host, key)
    on conflict do nothing;
  else
    insert into webhook_delivery (endpoint_id, type, url, host, body)
    values (callback_endpoint, webhook_job_type(found_job), webhook_callback_add.url, webhook_callback_add.host,
      webhook_body(webhook_job_type(found_job), found_job.finished_at, account, webhook_job(found_job)));
  end if;
end $$;
