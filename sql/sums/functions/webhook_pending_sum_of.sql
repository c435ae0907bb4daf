create or replace function webhook_pending_sum_of(d webhook_delivery) returns setof webhook_pending_sum language sql immutable as $$
  select null::bigint, d.account_id, 1 where d.due_at is not null
$$;
