-- Rejects jobs that would exceed an owner's quota of waiting jobs. Skips the check of each account while all accounts
-- together have fewer jobs than the smallest quota. Computing the total is cheap, because `job_count` has few rows.
create or replace function job_quota(owners integer[], setting bigint) returns void language plpgsql as $$
begin
  if (select sum(queued + waiting) from job_count) <= least(nullif(setting, 0),
      (select min(quota) from account_quota where kind = 'waiting_jobs' and quota > 0)) is not false then
    return;
  end if;
  -- Checks in id order, because each check may lock its account.
  if exists (select from (select distinct o from unnest(owners) o where o is not null order by o) owner(id)
      cross join lateral quota_exceeded(owner.id, '{waiting_jobs}', array[setting])) then
    raise exception 'Too many waiting jobs' using errcode = 'check_violation', constraint = 'job_owner_quota';
  end if;
end $$;
