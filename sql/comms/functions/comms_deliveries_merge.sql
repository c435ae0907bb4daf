-- Adds outcomes to the recipients of a message. `outcomes` has an object {status?, detail?} for each address that it
-- changes.
create or replace function comms_deliveries_merge(deliveries jsonb, outcomes jsonb) returns jsonb language sql immutable
  return (select coalesce(jsonb_agg(d.value || coalesce(outcomes -> (d.value ->> 'address'), '{}') order by d.ordinality), '[]')
    from jsonb_array_elements(deliveries) with ordinality d);
