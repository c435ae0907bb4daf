-- Returns a dispute as public JSON. A warning has no amount of its own, because it concerns the whole payment.
create or replace function payment_dispute_json(d payment_dispute, t payment_transaction) returns json language sql stable parallel safe
  return json_build_object('id', d.id, 'transaction_id', d.transaction_id, 'provider_dispute_id', d.provider_dispute_id,
    'status', d.status, 'reason', d.reason, 'amount', coalesce(d.amount, t.amount, 0), 'currency', coalesce(d.currency, t.currency),
    'evidence_due_by', iso(d.evidence_due_by), 'event_type', d.event_type, 'created_at', iso(d.created_at),
    'updated_at', iso(d.updated_at));
