-- Payments: what the provider has told of them, whoever asked for it.
--
-- Events come late, twice, and in any order. What they say is therefore kept as facts: name -> [stamp, value]. Of two
-- values of a fact the one with the greater stamp holds, so that a row depends on what was said of it and never on the
-- order in which it was heard. Stamps are compared as bytes; tasks/payments/changes.ts makes them. What clients see is
-- generated from the facts. Money is in the smallest unit of its currency.

-- Both together; of the same fact the later one, and of equal stamps one value, whichever comes first.
create or replace function payment_join(one jsonb, other jsonb) returns jsonb language sql immutable parallel safe
return (
  select coalesce(jsonb_object_agg(key, value), '{}') from (
    select distinct on (key) key, value
    from (select * from jsonb_each(one) union all select * from jsonb_each(other)) said
    order by key, (value ->> 0) collate "C" desc, (value -> 1)::text collate "C" desc) held);
