-- Calls the function that each of these jobs declares in `settle`, in the transaction that ends them.
create or replace function job_settle(ids uuid[]) returns void language plpgsql as $$
declare
  ended job;
begin
  for ended in select job.* from job where job.id = any(ids) order by job.ordinal loop
    execute format('select %I($1)', ended.settle) using ended;
  end loop;
end $$;
