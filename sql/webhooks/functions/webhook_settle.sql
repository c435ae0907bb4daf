-- Records a delivery attempt and schedules the next one. `delays` has the ms before each further attempt, and their sum
-- is the retry period. The delivery fails when the delays are used up or the retry period has passed, or if the
-- endpoint reports `gone`. After `failure_threshold` consecutive failures, an endpoint backs off, longer with each
-- further failure. A receiver's `Retry-After`, up to a day, delays the next attempt; with a status of 429 or 503, it
-- pauses the endpoint. An endpoint is disabled after failing for a whole retry period, or immediately if it reports `gone`. Returns
-- the status of the delivery (`delivered`, `pending` or `failed`), or `disabled` if the attempt disabled its endpoint.
-- Returns null if the delivery is no longer pending.
create or replace function webhook_settle(delivery bigint, outcome text, response jsonb, delays integer[], failure_threshold integer)
returns text language plpgsql as $$
#variable_conflict use_column
declare
  d webhook_delivery;
  e webhook_endpoint;
  retry_period interval := make_interval(secs => (select sum(ms) from unnest(delays) ms) / 1000.0);
  asked interval := case when response ? 'retry_after' then make_interval(secs => least((response ->> 'retry_after')::float8, 86400)) end;
  is_last boolean;
begin
  select * into d from webhook_delivery w where w.id = delivery and w.status = 'pending' for no key update;
  if not found then return null; end if;
  is_last := outcome = 'gone' or d.attempts >= cardinality(delays) or d.since + retry_period < now();
  update webhook_delivery w set attempts = d.attempts + 1, answers = d.answers || response,
    status = case when outcome = 'delivered' then 'delivered' when is_last then 'failed' else 'pending' end,
    ended_at = case when outcome = 'delivered' or is_last then now() end,
    -- Add 10 % jitter, so that deliveries that failed together are not retried together.
    due_at = case when outcome <> 'delivered' and not is_last
      then now() + greatest(make_interval(secs => delays[d.attempts + 1] * (0.9 + random() * 0.2) / 1000.0), asked) end
  where w.id = delivery returning w.* into d;
  if outcome = 'delivered' then
    update webhook_endpoint w set failures = 0, failing_since = null, blocked_until = null
    where w.id = d.endpoint_id and w.failures > 0;
    return 'delivered';
  end if;
  -- Exclude callbacks, because their URLs are unrelated to each other.
  update webhook_endpoint w set failures = w.failures + 1, failing_since = coalesce(w.failing_since, now()),
    blocked_until = case when w.failures + 1 >= failure_threshold
      then now() + make_interval(secs => delays[least(w.failures + 2 - failure_threshold, cardinality(delays))] / 1000.0) end,
    paused_until = case when response ->> 'status' in ('429', '503')
      then greatest(w.paused_until, now() + asked) else w.paused_until end
  where w.id = d.endpoint_id and w.url is not null returning w.* into e;
  if found and e.is_active and (outcome = 'gone' or e.failing_since + retry_period < now()) then
    update webhook_endpoint w set is_active = false, disabled_at = now() where w.id = e.id;
    return 'disabled';
  end if;
  return d.status;
end $$;
