-- Calls what the tasks of these jobs have declared for the end of a job; in the transaction that ends them.
create or replace function job_settle(ids uuid[]) returns void language plpgsql as $$
declare
  ended job;
begin
  for ended in select job.* from job where job.id = any(ids) order by job.ordinal loop
    execute format('select %I($1)', ended.settle) using ended;
  end loop;
end $$;
