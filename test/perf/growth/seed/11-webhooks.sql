-- 5,000 endpoints and 500,000 deliveries. A tenth of the deliveries belong to the big owner's first endpoint, and a
-- hundredth are pending.

insert into webhook_endpoint (secret, account_id, organization_id, url, host, events, created_at)
select 'aaaaaaaa.AAAA', case n when 1 then 2 else 4 + growth.pick(n, 11, growth.size(10000)) end, case when n = 1 then 1 end,
  'https://example.com/' || n, 'example.com', '{job.done}', growth.moment(n, size, '1 year')
from growth.size(5000) size, generate_series(1, size) n;

insert into webhook_delivery (endpoint_id, type, body, status, due_at, ended_at, attempts, created_at)
select case when n % 10 = 1 then 1 else 1 + growth.pick(n, 12, growth.size(5000)) end, 'job.done',
  '{"type":"job.done","data":{"n":' || n || '}}', state, case when state = 'pending' then at + interval '1 day' end,
  case when state <> 'pending' then at end, 1, at
from growth.size(500000) size, generate_series(1, size) n, growth.moment(n, size, '30 days') at,
  lateral (select case when n / 10 % 100 = 0 then 'pending' when n / 10 % 50 = 1 then 'failed' else 'delivered' end as state) of_it;
