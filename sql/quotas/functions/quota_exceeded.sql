-- Returns the kinds of which an account exceeds its quota, as this transaction sees it. `defaults` are the settings; 0
-- means no quota. Admins have none. Call it after the change that may exceed a quota. If concurrent changes could
-- exceed a quota together, it locks the account before the count, which serializes them. Account 0 is the service, which
-- has no row to lock.
create or replace function quota_exceeded(account integer, kinds text[], defaults bigint[])
returns table (kind text, quota bigint) language plpgsql as $$
#variable_conflict use_column
begin
  for kind, quota in
    select given.kind, coalesce(own.quota, given.quota)
    from unnest(kinds, defaults) given(kind, quota)
    left join account_quota own on own.account_id = account and own.kind = given.kind
    where coalesce(own.quota, given.quota) > 0
      and not exists (select from account a where a.id = account and a.role = 'admin')
  loop
    continue when quota_usage(account, quota_exceeded.kind) <= quota_exceeded.quota - greatest(quota_exceeded.quota / 10,
      case quota_exceeded.kind when 'bytes' then 10_000_000_000 when 'pages' then 200_000 when 'speech_characters' then 1_000_000 else 1000 end);
    perform from account a where a.id = account for no key update;
    if account = 0 then perform pg_advisory_xact_lock(hashtextextended('millrace.service_quotas', 0)); end if;
    if quota_usage(account, quota_exceeded.kind) > quota_exceeded.quota then
      return next;
    end if;
  end loop;
end $$;
