-- Ranks the provider's states of a message, which only ever moves to a higher rank. Without a provider id there is no
-- such state. Worse states rank higher, because one mail may reach one recipient and not another.
create or replace function comms_rank(status text, provider_id text) returns integer language sql immutable parallel safe
  return case when provider_id is null then 0
    else coalesce(array_position(array['sent', 'delivered', 'failed', 'bounced', 'complained'], status), 0) end;
