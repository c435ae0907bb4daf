-- Returns the recipients of a message as public JSON. A recipient without a state of its own has that of the message.
-- Events of the provider do not tell which of several recipients they are about, so they change only the message.
create or replace function comms_recipients_json(s comms_send) returns json language sql stable parallel safe
  return (select coalesce(json_agg(json_build_object('address', d.value ->> 'address',
      'status', coalesce(d.value ->> 'status',
        case when s.provider_id is not null and jsonb_array_length(s.deliveries) > 1 then 'sent' else s.status end),
      'detail', coalesce(d.value ->> 'detail', case when jsonb_array_length(s.deliveries) = 1 then s.detail end)) order by d.ordinality), '[]')
    from jsonb_array_elements(s.deliveries) with ordinality d);
