-- Matches each event with its message, first by the provider's id. If none has that id, matches by message id, for
-- messages without a provider id yet. The message id comes from this event, or from another one with the same provider
-- id. Null means no match, as for messages that other systems send from the same account.
create or replace function comms_events_match(events jsonb) returns table (send uuid, provider_id text, status text,
  provider_status text, error_code text, detail text, event_id text, suppresses text) language sql stable as $$
  select coalesce(
      (select s.id from comms_send s where s.channel = e.channel and s.provider_id = e.provider_id),
      (select s.id from comms_send s where s.id = e.named and s.channel = e.channel and s.provider_id is null)),
    e.provider_id, e.status, e.provider_status, e.error_code, e.detail, e.event_id, lower(e.suppresses)
  from (
    select *, first_value(send_id) over (partition by channel, provider_id order by send_id) as named
    from jsonb_to_recordset(events) as e(channel text, provider_id text, send_id uuid, status text, provider_status text,
      error_code text, detail text, event_id text, suppresses text)
  ) e
$$;
