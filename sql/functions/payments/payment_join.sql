-- Payments: what the provider has reported about them, see schema/11-payments.sql.

-- Merges two sets of facts; the later value of a fact wins, and of equal stamps the same one in either order.
create or replace function payment_join(one jsonb, other jsonb) returns jsonb language sql immutable parallel safe
return (
  select coalesce(jsonb_object_agg(key, value), '{}') from (
    select distinct on (key) key, value
    from (select * from jsonb_each(one) union all select * from jsonb_each(other)) said
    order by key, (value ->> 0) collate "C" desc, (value -> 1)::text collate "C" desc) held);
