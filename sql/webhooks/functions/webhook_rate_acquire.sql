-- Acquires up to `wanted` deliveries of an account to a host, within a rate limit of `max_deliveries` per `seconds`. A
-- `max_deliveries` of 0 means no limit. Returns how many may be sent now. If they are fewer than wanted, the host
-- pauses until the next one is allowed.
create or replace function webhook_rate_acquire(account integer, target_host text, wanted integer, max_deliveries integer, seconds integer)
returns integer language plpgsql as $$
#variable_conflict use_column
declare
  -- Width of a slot, a sixtieth of the period.
  width float8 := seconds / 60.0;
  slot bigint := floor(extract(epoch from clock_timestamp()) / width);
  rate webhook_rate;
  sent integer;
  granted integer;
begin
  if max_deliveries = 0 then return wanted; end if;
  loop
    insert into webhook_rate (account_id, host, slots, counts, expires_at) values (account, target_host, '{}', '{}', now())
    on conflict on constraint webhook_rate_pkey do nothing;
    select * into rate from webhook_rate where account_id = account and host = target_host for no key update;
    -- The pruner may have deleted the row in between. The loop then inserts it again.
    exit when found;
  end loop;
  -- Counts one slot more than the period has, because a partly expired slot counts in full.
  select coalesce(array_agg(s order by s), '{}'), coalesce(array_agg(c order by s), '{}'), coalesce(sum(c), 0)
  into rate.slots, rate.counts, sent
  from unnest(rate.slots, rate.counts) u(s, c) where s >= slot - 60;
  granted := greatest(0, least(wanted, max_deliveries - sent));
  if granted > 0 then
    rate.slots := rate.slots || slot;
    rate.counts := rate.counts || granted;
  end if;
  update webhook_rate set slots = rate.slots, counts = rate.counts,
    blocked_until = case when granted < wanted then to_timestamp((rate.slots[1] + 61) * width) end,
    expires_at = to_timestamp((slot + 62) * width)
  where account_id = account and host = target_host;
  return granted;
end $$;
