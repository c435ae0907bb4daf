-- Returns the current states of jobs as lines (see job_state_line), in the order of the ids. A function, so that its plan is cached.
create or replace function job_states(ids uuid[]) returns setof text language plpgsql stable as $$
begin
  return query select job_state_line(job)
  from unnest(ids) with ordinality as wanted (id, n) join job on job.id = wanted.id order by wanted.n;
end $$;
