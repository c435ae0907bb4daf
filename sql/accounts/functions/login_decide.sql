-- Decides a login after its password was checked, and uses up its code. Returns `ok`, `wrong`, `wrong, now locked`,
-- `locked` or `incomplete`. An `incomplete` login has the right password but lacks the code for the second factor
-- `totp`. It counts neither as a failure nor as a success. `step` is the time step of a one-time code, or -1 if the
-- code matches none. `recovery` is the digest of a recovery code.
--
-- Decides under the lock of the address's failures. So concurrent guesses get at most `max_failures` wrong results in a
-- row, and no right one after that. Lock order: the failures of the address, the second factor, then (by the caller)
-- the account.
create or replace function login_decide(subject bytea, matches boolean, max_failures integer, lock interval,
  totp uuid, step bigint, recovery bytea)
returns text language plpgsql as $$
#variable_conflict use_column
declare
  failure login_failure;
begin
  select * into failure from login_failure f where f.subject = login_decide.subject for update;
  -- The caller has already checked the password, so a locked address takes the same time for a right one as for a wrong
  -- one.
  if failure.locked_until > clock_timestamp() then return 'locked'; end if;
  if matches and totp is not null then
    if step is null and recovery is null then return 'incomplete'; end if;
    update account_totp t set last_step = greatest(t.last_step, step), recovery_codes = array_remove(t.recovery_codes, recovery)
    where t.id = totp and (t.last_step < step or recovery = any(t.recovery_codes));
    matches := found;
  end if;
  if matches then
    -- Keeps a lock that concurrent failures set after the select above.
    delete from login_failure f where f.subject = login_decide.subject and coalesce(f.locked_until <= clock_timestamp(), true);
    if exists (select from login_failure f where f.subject = login_decide.subject and f.locked_until > clock_timestamp()) then
      return 'locked';
    end if;
    return 'ok';
  end if;
  insert into login_failure as f (subject, failures, failed_at) values (login_decide.subject, 1, clock_timestamp())
  on conflict on constraint login_failure_pkey do update set
    -- Expired locks no longer count, nor do failures older than the duration of a lock.
    failures = case when coalesce(f.locked_until, f.failed_at + lock) <= clock_timestamp() then 1 else f.failures + 1 end,
    locked_until = case when f.locked_until > clock_timestamp() then f.locked_until end,
    failed_at = case when f.locked_until > clock_timestamp() then f.failed_at else clock_timestamp() end
  returning * into failure;
  -- A concurrent first failure set this lock after the select above.
  if failure.locked_until is not null then return 'locked'; end if;
  if failure.failures >= max_failures then
    update login_failure f set locked_until = clock_timestamp() + lock where f.subject = login_decide.subject;
    return 'wrong, now locked';
  end if;
  return 'wrong';
end $$;
