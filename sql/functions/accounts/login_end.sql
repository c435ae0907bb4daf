-- How a login whose password was checked ends: `ok`, `wrong`, `wrong, now locked`, `locked`, or `incomplete` when the password
-- matches and the account's second factor `totp` is not there, which counts neither way. A code is used up by it: `step` is
-- the time step of a one-time code, -1 for one of no step; `recovery` is the digest of a recovery code. Decided under the
-- row's lock: of concurrent guesses, at most `most` in a row are told that they were wrong, and no later one that it was
-- right. Locks: the failures of the address, then the second factor, then (by the caller) the account.
create or replace function login_end(subject bytea, matches boolean, most integer, lock interval,
  totp uuid, step bigint, recovery bytea)
returns text language plpgsql as $$
#variable_conflict use_column
declare
  known login_failure;
begin
  select * into known from login_failure f where f.subject = login_end.subject for update;
  -- A locked address does the same work for the right password as for a wrong one.
  if known.locked_until > clock_timestamp() then return 'locked'; end if;
  if matches and totp is not null then
    if step is null and recovery is null then return 'incomplete'; end if;
    update account_totp t set last_step = greatest(t.last_step, step), recovery_codes = array_remove(t.recovery_codes, recovery)
    where t.id = totp and (t.last_step < step or recovery = any(t.recovery_codes));
    matches := found;
  end if;
  if matches then
    -- Not a lock of concurrent failures, which the select above could not see yet.
    delete from login_failure f where f.subject = login_end.subject and coalesce(f.locked_until <= clock_timestamp(), true);
    if exists (select from login_failure f where f.subject = login_end.subject and f.locked_until > clock_timestamp()) then
      return 'locked';
    end if;
    return 'ok';
  end if;
  insert into login_failure as f (subject, failures, failed_at) values (login_end.subject, 1, clock_timestamp())
  on conflict on constraint login_failure_pkey do update set
    -- An expired lock, or failures older than a lock lasts, no longer count.
    failures = case when coalesce(f.locked_until, f.failed_at + lock) <= clock_timestamp() then 1 else f.failures + 1 end,
    locked_until = case when f.locked_until > clock_timestamp() then f.locked_until end,
    failed_at = case when f.locked_until > clock_timestamp() then f.failed_at else clock_timestamp() end
  returning * into known;
  -- Locked by a concurrent first failure, which the select above could not see yet.
  if known.locked_until is not null then return 'locked'; end if;
  if known.failures >= most then
    update login_failure f set locked_until = clock_timestamp() + lock where f.subject = login_end.subject;
    return 'wrong, now locked';
  end if;
  return 'wrong';
end $$;
