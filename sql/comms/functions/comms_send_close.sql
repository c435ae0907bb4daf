-- Ends messages that no request follows, as `failed` or `cancelled`. `outcomes` adds to the recipients, see
-- comms_deliveries_merge. If some recipients have an email already, the message is `sent`, and only the others have the
-- outcome.
create or replace function comms_send_close(ids uuid[], outcome text, code text, reason text, outcomes jsonb default '{}')
returns void language sql as $$
  update comms_send s set
    status = case when e.is_sent then 'sent' else outcome end,
    error_code = case when not e.is_sent then code end,
    detail = reason,
    deliveries = case when not e.is_sent then e.deliveries else (
      select jsonb_agg(case when d.value ? 'status' then d.value
        else d.value || jsonb_strip_nulls(jsonb_build_object('status', outcome, 'detail', reason)) end order by d.ordinality)
      from jsonb_array_elements(e.deliveries) with ordinality d) end,
    message = case when outcome = 'failed' and not e.is_sent then s.message end,
    next_attempt_at = null, settled_at = now()
  from (
    select m.id, m.deliveries, m.deliveries @> '[{"status": "sent"}]' as is_sent
    from (select id, comms_deliveries_merge(deliveries, outcomes) as deliveries from comms_send where id = any(ids)) m
  ) e
  where s.id = e.id;
$$;
