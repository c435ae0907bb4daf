create or replace function payment_subscription_json(s payment_subscription) returns json language sql stable parallel safe
  return json_build_object('id', s.id, 'provider_subscription_id', s.provider_subscription_id, 'plan_name', s.plan_name,
    'status', s.status, 'current_period_start', iso(s.current_period_start), 'current_period_end', iso(s.current_period_end),
    'cancel_at_period_end', s.cancel_at_period_end, 'cancel_at', iso(s.cancel_at));
