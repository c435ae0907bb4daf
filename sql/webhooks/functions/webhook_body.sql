-- Returns the body of a webhook (https://www.standardwebhooks.com: type, timestamp, data).
create or replace function webhook_body(type text, at timestamptz, data json) returns text language sql stable parallel safe
  return json_build_object('type', type, 'timestamp', iso(at), 'data', data)::text;
