-- 5,000 organizations. The first one belongs to the big owner and has a fifth of all members and a tenth of all
-- invites.

insert into organization (name, slug, description, created_at)
select 'Organization ' || n, 'organization-' || n, case when n % 2 = 0 then 'About ' || growth.word(n) end,
  growth.moment(n, size, '1 year')
from growth.size(5000) size, generate_series(1, size) n;

insert into organization_member (organization_id, user_id, role, joined_at)
select id, case id when 1 then 2 when 2 then 3 else 4 + growth.pick(id, 5, growth.size(10000)) end, 'owner', created_at
from organization;

insert into organization_member (organization_id, user_id, role, joined_at)
select case when n % 5 = 0 then 1 else 1 + growth.pick(n, 6, growth.size(5000)) end,
  case when n % 5 = 0 then 4 + n / 5 % growth.size(10000) else 4 + growth.pick(n, 7, growth.size(10000)) end,
  case when n % 20 = 0 then 'admin' else 'member' end, growth.moment(n, size, '1 year')
from growth.size(50000) size, generate_series(1, size) n
on conflict do nothing;

insert into organization_invite (organization_id, email, role, status, invited_by, created_at, expires_at, accepted_at)
select case when n % 10 = 0 then 1 else 1 + growth.pick(n, 8, growth.size(5000)) end, 'invited-' || n || '@example.com',
  'member', state, 4 + growth.pick(n, 9, growth.size(10000)), at, at + interval '14 days',
  case when state = 'accepted' then at + interval '1 day' end
from growth.size(20000) size, generate_series(1, size) n, growth.moment(n, size, '14 days') at,
  lateral (select case when n % 3 = 0 then 'accepted' when n % 17 = 0 then 'revoked' else 'pending' end as state) of_it;

-- A third of the members have two keys each. The big owner has 90, close to the limit of 100.
insert into api_key (id, account_id, organization_id, name, digest, hint, scopes, created_at, last_used_at)
select growth.id(at), m.user_id, case when n % 2 = 0 then m.organization_id end, 'key ' || n,
  sha256(('key ' || m.id || ' ' || n)::bytea), 'seed', '{documents:read}', at, at
from organization_member m, generate_series(1, case when m.user_id = 2 and m.organization_id = 1 then 90 else 2 end) n,
  growth.moment(m.id::int, growth.size(20000), '1 year') at
where m.id % 3 = 0 or (m.user_id = 2 and m.organization_id = 1);
