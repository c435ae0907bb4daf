-- Returns a transaction as public JSON.
create or replace function payment_transaction_json(t payment_transaction) returns json language sql stable parallel safe
  return json_build_object('id', t.id, 'provider_transaction_id', t.provider_transaction_id, 'type', t.type,
    'status', t.status, 'amount', t.amount, 'currency', t.currency,
    'description', coalesce(t.description, 'Refund of transaction ' || t.charge_id, ''), 'created_at', iso(t.created_at));
