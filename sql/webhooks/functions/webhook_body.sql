-- Returns the body of a webhook (https://www.standardwebhooks.com: type, timestamp, data), with the account of the
-- event. The account is null for a message about an endpoint of the service itself.
create or replace function webhook_body(type text, at timestamptz, account integer, data json) returns text language sql stable parallel safe
  return json_build_object('type', type, 'timestamp', iso(at), 'account_id', account, 'data', data)::text;
