-- Merges facts that the provider has reported about payments. See payments/tables.sql.

-- Merges two sets of facts. The value with the greater stamp wins. If the stamps are equal, the greater value wins, so
-- that the order of the arguments does not matter.
create or replace function payment_join(one jsonb, other jsonb) returns jsonb language sql immutable parallel safe
return (
  select coalesce(jsonb_object_agg(key, value), '{}') from (
    select distinct on (key) key, value
    from (select * from jsonb_each(one) union all select * from jsonb_each(other)) entries
    order by key, (value ->> 0) collate "C" desc, (value -> 1)::text collate "C" desc) winners);
