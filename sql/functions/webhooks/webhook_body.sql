-- What a webhook sends (https://www.standardwebhooks.com: a type, a timestamp, data).
create or replace function webhook_body(type text, at timestamptz, data json) returns text language sql stable parallel safe
  return json_build_object('type', type, 'timestamp', iso(at), 'data', data)::text;
