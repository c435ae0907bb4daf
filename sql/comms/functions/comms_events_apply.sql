-- Applies provider events to messages, suppresses the addresses that the events name, and returns the number of changed
-- messages. A complaint about a broadcast suppresses broadcasts only; everything else suppresses all streams. Events arrive
-- late, twice and in any order, so the event of the highest rank determines the state of a message. Events about unknown
-- messages are ignored. So is the state of a message whose job still sends it to deferred recipients.
create or replace function comms_events_apply(events jsonb) returns integer language plpgsql as $$
#variable_conflict use_column
declare
  moved integer;
begin
  -- A separate statement, so that the next one sees the commits of the previous lock holders.
  perform from comms_send s where s.id in (select send from comms_events_match(events)) order by s.id for update;

  with fresh as (
    select e.send, e.event_id, e.suppresses, e.status, s.stream from comms_events_match(events) e join comms_send s on s.id = e.send
    where e.suppresses is not null and not e.event_id = any(s.suppressed_by)
  ), noted as (
    update comms_send s set suppressed_by = s.suppressed_by || e.ids
    from (select send, array_agg(distinct event_id) as ids from fresh group by send) e where s.id = e.send
  )
  insert into comms_suppression as known (address, stream, reason, send_id)
  select distinct on (f.suppresses, t.stream) f.suppresses, t.stream, f.status, f.send
  from fresh f cross join unnest(array['broadcast', 'transactional']) t(stream)
  where t.stream = 'broadcast' or f.stream = 'transactional' or f.status = 'bounced'
  order by f.suppresses, t.stream, (f.status = 'complained') desc, f.send
  on conflict (address, stream) do update set reason = excluded.reason, send_id = excluded.send_id
  where array_position(array['unsubscribed', 'bounced', 'complained'], known.reason)
    < array_position(array['unsubscribed', 'bounced', 'complained'], excluded.reason);

  update comms_send s set status = e.status, provider_id = e.provider_id, provider_status = e.provider_status,
    error_code = e.error_code, settled_at = now(), message = null,
    -- Keeps the detail from the provider's acceptance, such as a refused recipient, if the event has none.
    detail = case when s.status = 'sent' then coalesce(e.detail, s.detail) else e.detail end,
    -- The request time is missing if the database was restored to a moment before the request.
    requested_at = coalesce(s.requested_at, now())
  from (
    select distinct on (send) * from comms_events_match(events) order by send, comms_rank(status, provider_id) desc
  ) e
  where s.id = e.send and not (s.settled_at is null and s.deliveries @> '[{"status": "queued"}]')
    and comms_rank(e.status, e.provider_id) > comms_rank(s.status, s.provider_id);
  get diagnostics moved = row_count;
  return moved;
end $$;
