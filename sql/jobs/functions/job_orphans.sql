-- Returns at most `batch_size` running jobs whose lease is gone. An open snapshot retains the dead index entries of all
-- jobs that have run. So the statement reads only the parts of the index between the existing leases.
create or replace function job_orphans(batch_size integer) returns table (id uuid, attempt integer, lease_id uuid, interruptions integer)
  language sql stable
as $$
  select job.id, job.attempt, job.lease_id, job.interruptions
  from (select lease.id as after, lead(lease.id, 1, 'ffffffff-ffff-ffff-ffff-ffffffffffff') over (order by lease.id) as before
    from (select id from worker_lease union all select '00000000-0000-0000-0000-000000000000') lease(id)) gap
  cross join lateral (select id, attempt, lease_id, interruptions from job
    where status = 'running' and lease_id > gap.after and lease_id < gap.before limit batch_size) job
  limit batch_size
$$;
