-- Returns a job as webhooks send it. Omits a result over 16,384 characters.
create or replace function webhook_job(j job) returns json language plpgsql stable as $$
begin
  if j.result is null or length(j.result::text) <= 16384 then return job_json(j); end if;
  j.result := null;
  return (job_json(j)::jsonb || '{"result_omitted": true}')::json;
end $$;
