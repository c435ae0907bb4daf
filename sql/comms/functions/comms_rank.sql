-- Returns the rank of a state that the provider reported. A message only ever moves to a higher rank. The rank is 0
-- without a provider id. Worse states rank higher, because one mail may reach one recipient but not another.
create or replace function comms_rank(status text, provider_id text) returns integer language sql immutable parallel safe
  return case when provider_id is null then 0
    else coalesce(array_position(array['sent', 'delivered', 'failed', 'bounced', 'complained'], status), 0) end;
