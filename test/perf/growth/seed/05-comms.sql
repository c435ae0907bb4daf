-- Half a million messages of the last 90 days.

insert into comms_send (id, channel, purpose, owner_id, job_id, recipients, message, status, requests, provider_id, error_code,
  detail, created_at, requested_at, settled_at)
select growth.id(at), channel, case when n % 10 = 0 then 'account' else 'caller' end,
  case when n % 10 > 0 then growth.owner(n, size, 30, growth.size(10000)) end, gen_random_uuid(),
  array[case when channel = 'email' then 'reader-' || growth.pick(n, 13, 100000) || '@example.com' else '+14155550' || 100 + n % 900 end],
  case when state in ('failed', 'unknown') then '{"subject": "Hello"}'::jsonb end, state, 1,
  case when state not in ('failed', 'unknown') then 'provider-' || n end,
  case when state = 'failed' then 'comms.refused' end, case when state not in ('sent', 'delivered') then 'The address does not exist' end,
  at, at + interval '1 second', at + interval '2 seconds'
from growth.size(500000) size, generate_series(1, size) n, growth.moment(n, size, '90 days') at,
  lateral (select case when n % 10 < 8 then 'email' when n % 10 = 8 then 'sms' else 'call' end as channel,
    case when n % 33 = 1 then 'failed' when n % 500 = 2 then 'unknown' when n % 100 = 3 then 'bounced' when n % 1000 = 4 then 'complained'
      when n % 2 = 0 then 'sent' else 'delivered' end as state) of_it;

-- One suppressed address per hundred messages.
insert into comms_suppression (address, stream, reason, send_id, created_at)
select 'gone-' || n || '@example.com', stream, case when n % 10 = 0 then 'complained' else 'bounced' end, growth.id(at), at
from growth.size(5000) size, generate_series(1, size) n, growth.moment(n, size, '90 days') at,
  unnest(array['transactional', 'broadcast']) stream;

insert into comms_template (name, channel, subject, text, html, variables)
select 'template-' || n, 'email', 'Hello {{name}}', repeat('Hello {{name}} ', 100), repeat('<p>Hello {{name}}</p>', 100), '[{"name": "name"}]'
from growth.size(1000) size, generate_series(1, size) n;
