-- Returns the outcomes of the jobs on which a job depends, as `job_results` does. If their results have more than `most_bytes`
-- together, they are left out, and `result_omitted` is true.
create or replace function worker_dependencies(ids uuid[], most_bytes integer) returns json language sql stable
as $$
  select json_agg(json_build_object('job_id', wanted.id, 'status', job.status,
    'result', case when total <= most_bytes then job.result end, 'result_omitted', total > most_bytes and job.result is not null,
    'error', case when job.error_code is not null then json_build_object('code', job.error_code, 'detail', job.error_detail) end)
    order by wanted.n)
  from (select coalesce(sum(octet_length(job.result::text)), 0) as total from job where job.id = any(ids)) sizes
  cross join unnest(ids) with ordinality as wanted(id, n) left join job on job.id = wanted.id
$$;
