-- How far the provider's word of a message goes: a message only ever moves on to a greater one. Until it has the provider's
-- id nothing is known from there; after that whatever is worse counts more, since one mail may reach one recipient and not another.
create or replace function comms_rank(status text, provider_id text) returns integer language sql immutable parallel safe
  return case when provider_id is null then 0
    else coalesce(array_position(array['sent', 'delivered', 'failed', 'bounced', 'complained'], status), 0) end;
