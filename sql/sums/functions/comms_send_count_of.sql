-- Counts scheduled, queued and sending messages as one status, so that an outgoing request changes no count.
create or replace function comms_send_count_of(s comms_send) returns setof comms_send_count language sql immutable as $$
  select null::bigint, (s.created_at at time zone 'utc')::date, s.channel,
    case when s.status in ('scheduled', 'queued', 'sending') then 'waiting' else s.status end, 1
$$;
