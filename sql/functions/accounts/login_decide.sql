-- Decides a login after its password was checked: `ok`, `wrong`, `wrong, now locked`, `locked` or `incomplete`.
-- `incomplete`: the password matches, but the code for the second factor `totp` is missing. Such a login counts neither
-- as a failure nor as a success. A login uses up its code. `step` is the time step of a one-time code (-1: of no step),
-- `recovery` the digest of a recovery code.
--
-- Decides under the row's lock. So concurrent guesses get at most `max_failures` wrong results in a row, and no right
-- one after that. Lock order: the failures of the address, the second factor, then (by the caller) the account.
create or replace function login_decide(subject bytea, matches boolean, max_failures integer, lock interval,
  totp uuid, step bigint, recovery bytea)
returns text language plpgsql as $$
#variable_conflict use_column
declare
  failure login_failure;
begin
  select * into failure from login_failure f where f.subject = login_decide.subject for update;
  -- While locked, the right password costs as much work as a wrong one.
  if failure.locked_until > clock_timestamp() then return 'locked'; end if;
  if matches and totp is not null then
    if step is null and recovery is null then return 'incomplete'; end if;
    update account_totp t set last_step = greatest(t.last_step, step), recovery_codes = array_remove(t.recovery_codes, recovery)
    where t.id = totp and (t.last_step < step or recovery = any(t.recovery_codes));
    matches := found;
  end if;
  if matches then
    -- Keeps a lock set by concurrent failures, which the select above could not see yet.
    delete from login_failure f where f.subject = login_decide.subject and coalesce(f.locked_until <= clock_timestamp(), true);
    if exists (select from login_failure f where f.subject = login_decide.subject and f.locked_until > clock_timestamp()) then
      return 'locked';
    end if;
    return 'ok';
  end if;
  insert into login_failure as f (subject, failures, failed_at) values (login_decide.subject, 1, clock_timestamp())
  on conflict on constraint login_failure_pkey do update set
    -- Expired locks and failures older than a lock's duration no longer count.
    failures = case when coalesce(f.locked_until, f.failed_at + lock) <= clock_timestamp() then 1 else f.failures + 1 end,
    locked_until = case when f.locked_until > clock_timestamp() then f.locked_until end,
    failed_at = case when f.locked_until > clock_timestamp() then f.failed_at else clock_timestamp() end
  returning * into failure;
  -- Locked by a concurrent first failure, which the select above could not see yet.
  if failure.locked_until is not null then return 'locked'; end if;
  if failure.failures >= max_failures then
    update login_failure f set locked_until = clock_timestamp() + lock where f.subject = login_decide.subject;
    return 'wrong, now locked';
  end if;
  return 'wrong';
end $$;
