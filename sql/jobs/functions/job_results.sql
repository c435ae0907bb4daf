-- Returns the outcomes of these jobs as JSON, in their order; null for a job that was deleted.
create or replace function job_results(ids uuid[]) returns json language sql stable
as $$
  select json_agg(json_build_object('job_id', wanted.id, 'status', job.status, 'result', job.result,
    'error', case when job.error_code is not null then json_build_object('code', job.error_code, 'detail', job.error_detail) end)
    order by wanted.n)
  from unnest(ids) with ordinality as wanted(id, n) left join job on job.id = wanted.id
$$;
