-- 10,000 accounts with ten sessions each; the big owner has one percent of the sessions. A million audit events.

insert into account (email, password_hash, full_name, is_verified, last_login, created_at)
select 'person-' || n || '@example.com', '$argon2id$v=19$m=19456,t=2,p=1$c2VlZA$c2VlZA', initcap(growth.word(n)),
  n % 10 > 0, growth.moment(n, size, '30 days'), growth.moment(n, size, '1 year')
from growth.size(10000) size, generate_series(1, size) n;

create table growth.session as
select n, gen_random_uuid() as id, growth.owner(n, size, 1, growth.size(10000)) as account_id,
  growth.moment(n, size, '14 days') as at, sha256(('session ' || n)::bytea) as digest
from growth.size(100000) size, generate_series(1, size) n;
insert into session (id, account_id, created_at, revoked_at, ended_at, address, user_agent)
select id, account_id, at, case when n % 5 = 0 then at + interval '1 hour' end,
  case when n % 10 = 0 then at + interval '1 hour' end, '203.0.113.' || n % 250, 'Mozilla/5.0 (X11; Linux x86_64)'
from growth.session;
insert into refresh_token (digest, session_id, created_at, expires_at) select digest, id, at, at + interval '14 days' from growth.session;
drop table growth.session;

insert into account_token (id, account_id, kind, digest, created_at, expires_at, used_at)
select growth.id(at), 4 + growth.pick(n, 3, growth.size(10000)), case when n % 2 = 0 then 'reset' else 'verify' end,
  sha256(('token ' || n)::bytea), at, at + interval '1 day', case when n % 3 > 0 then at + interval '5 minutes' end
from growth.size(20000) size, generate_series(1, size) n, growth.moment(n, size, '1 day') at;

insert into email_change (id, account_id, email, old_digest, new_digest, expires_at)
select growth.id(now()), id, 'next-' || id || '@example.com', sha256(('old ' || id)::bytea), sha256(('new ' || id)::bytea),
  now() + interval '1 day'
from account where id <= 3 or id % 10 = 0;

insert into login_failure (subject, failures, failed_at)
select sha256(('subject ' || n)::bytea), 1 + n % 4, growth.moment(n, size, '1 day')
from growth.size(20000) size, generate_series(1, size) n;

insert into idempotency_key (scope, key, fingerprint, status, headers, body, created_at)
select 'account:' || growth.owner(n, size, 5, growth.size(10000)), 'key-' || n, sha256(n::text::bytea), 201, '[]',
  '{"id":' || n || '}', growth.moment(n, size, '1 day')
from growth.size(300000) size, generate_series(1, size) n;

select partitions_maintain('audit_event', 0, now() - interval '1 year');
-- Most audit events are sign-ins, and one in ten concerns an organization.
insert into audit_event (at, kind, actor_id, account_id, organization_id, address, request_id)
select growth.moment(n, size, '1 year'),
  (array['account.signed_in', 'account.signed_in', 'account.signed_in', 'account.signed_in', 'account.signed_in',
    'account.signed_out', 'account.sign_in_failed', 'account.updated', 'account.registered', 'member.added'])[1 + n % 10],
  case when n % 10 <> 6 then account end, account,
  case when n % 10 = 9 then 1 + growth.pick(n, 4, growth.size(5000)) end, '203.0.113.' || n % 250, gen_random_uuid()::text
from growth.size(1000000) size, generate_series(1, size) n, growth.owner(n, size, 5, growth.size(10000)) account;

-- Every other account has a passkey, and the big owner has the maximum.
insert into passkey (id, account_id, credential_id, public_key, counter, transports, name, is_synced)
select gen_random_uuid(), a.id, sha256(('passkey ' || a.id || ' ' || n)::bytea), '\x01', n, '{internal}', 'passkey ' || n, true
from account a, generate_series(1, case when a.id = 2 then 20 else 1 end) n where a.id % 2 = 0;
