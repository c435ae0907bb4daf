-- Claims up to `batch_size` due deliveries of an endpoint to a host, longest due first. After `failure_threshold`
-- failures in a row, claims only one. A delivery that is not settled becomes due again after `hold_seconds`. The rate
-- limit depends on whether the endpoint has proved itself. Callbacks count as proved if the account has a proved
-- endpoint at their host.
create or replace function webhook_claim(endpoint bigint, target_host text, batch_size integer, failure_threshold integer, hold_seconds float8,
  proved integer, proved_seconds integer, unproved integer, unproved_seconds integer)
returns setof webhook_delivery language plpgsql as $$
declare
  e webhook_endpoint;
  wanted integer;
  is_proved boolean;
begin
  select w.* into e from webhook_endpoint w left join account a on a.id = w.account_id
  where w.id = endpoint and w.is_active and coalesce(a.is_active, true)
    and coalesce(greatest(w.blocked_until, w.paused_until) <= now(), true);
  if not found then return; end if;
  select count(*) into wanted from (
    select from webhook_delivery d where d.endpoint_id = endpoint and d.host = target_host and d.due_at <= now()
    limit case when e.failures >= failure_threshold then 1 else batch_size end) due;
  if wanted = 0 then return; end if;
  is_proved := case when e.url is not null then e.proved_at is not null else exists (
    select from webhook_endpoint p where p.account_id = e.account_id and p.host = target_host and p.is_active and p.proved_at is not null) end;
  wanted := case when is_proved then webhook_rate_acquire(coalesce(e.account_id, 0), target_host, wanted, proved, proved_seconds)
    else webhook_rate_acquire(coalesce(e.account_id, 0), target_host, wanted, unproved, unproved_seconds) end;
  return query
    update webhook_delivery d set due_at = now() + make_interval(secs => hold_seconds),
      since = case when d.attempts = 0 then now() else d.since end
    where d.id in (
      select w.id from webhook_delivery w where w.endpoint_id = endpoint and w.host = target_host and w.due_at <= now()
      order by w.due_at, w.id limit wanted for update skip locked)
    returning d.*;
end $$;
