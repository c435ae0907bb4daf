-- Sets the account and host of a delivery. Drops the delivery if its account has used up its quota of pending ones.
-- Otherwise an endpoint that accepts nothing would fill the database. An error instead would make the event's
-- transaction fail.
create or replace function webhook_admit() returns trigger language plpgsql as $$
declare
  quota bigint;
begin
  select coalesce(e.account_id, 0), coalesce(new.host, e.host),
    case when a.role is distinct from 'admin' then coalesce(
      (select q.quota from account_quota q where q.account_id = e.account_id and q.kind = 'pending_deliveries'),
      (select s.value from setting s where s.name = 'QUOTA_PENDING_DELIVERIES')) end
  into new.account_id, new.host, quota
  from webhook_endpoint e left join account a on a.id = e.account_id where e.id = new.endpoint_id;
  if not found then
    -- The endpoint does not exist, so the foreign key rejects the row.
    new.account_id := 0;
    new.host := '';
  end if;
  return case when quota > 0 and quota_usage(new.account_id, 'pending_deliveries') >= quota then null else new end;
end $$;

create or replace trigger webhook_admit before insert on webhook_delivery for each row execute function webhook_admit();
