-- Notifies the owners' endpoints and the callbacks of ended jobs. Runs in the transaction that ends the jobs.
create or replace function webhook_jobs_ended(ids uuid[]) returns void language plpgsql as $$
begin
  -- Most deployments have no endpoints. This check is then all that the end of a job costs.
  if not exists (select from webhook_endpoint) then return; end if;

  insert into webhook_delivery (endpoint_id, type, body)
  select e.id, webhook_job_type(j), webhook_body(webhook_job_type(j), j.finished_at, j.owner_id, webhook_job(j))
  from job j cross join lateral webhook_receivers(j.owner_id, webhook_job_type(j)) e
  where j.id = any(ids) and j.finished_at is not null
  union all
  select e.id, 'document.read', webhook_body('document.read', j.finished_at, j.owner_id,
    json_build_object('document_id', j.payload -> 'documentId', 'job_id', j.id, 'result', j.result))
  from job j cross join lateral webhook_receivers(j.owner_id, 'document.read') e
  where j.id = any(ids) and j.status = 'done' and j.name = 'documents.extract';

  with called as (
    delete from job_callback c using job j where c.job_id = any(ids) and j.id = c.job_id and j.finished_at is not null
    returning c.endpoint_id, c.url, c.host, j as job
  )
  insert into webhook_delivery (endpoint_id, type, url, host, body)
  select c.endpoint_id, webhook_job_type(job), c.url, c.host,
    webhook_body(webhook_job_type(job), (job).finished_at, e.account_id, webhook_job(job))
  from called c join webhook_endpoint e on e.id = c.endpoint_id;
end $$;
