import type { Fill } from './fill.ts'

const LONG = `repeat('unbreakable', 9)`
const COUNT = 10_000

/** Every state of a webhook endpoint, by the remainder of its number. */
const ENDPOINTS = `
  insert into webhook_endpoint (secret, account_id, url, host, events, description, is_active, failures, failing_since,
    proved_at, paused_until, disabled_at)
  select 'aaaaaaaa.AAAA', case when i % 2 = 0 then $1::int end, 'https://hooks.example.com/' || case when i % 5 = 0 then ${LONG} else i::text end,
    'hooks.example.com',
    case when i % 3 = 0 then '{job.done}' else '{job.done,job.failed,job.cancelled,document.read,send.changed}' end::text[],
    case i % 4 when 0 then null when 1 then '' when 2 then 'Books of the mill' else ${LONG} end,
    i % 7 not in (0, 1), case when i % 7 in (1, 2) then 9 else 0 end,
    case when i % 7 in (1, 2) then now() - interval '1 hour' end,
    case when i % 3 > 0 then now() end,
    case when i % 7 = 3 then now() + interval '1 day' end,
    case when i % 7 = 1 then now() end
  from generate_series(1, ${2 * COUNT}) i`

const DELIVERIES = `
  insert into webhook_delivery (endpoint_id, account_id, host, type, body, status, due_at, attempts, answers, created_at, ended_at)
  select $1::bigint, $2::int, 'hooks.example.com', case when i % 2 = 0 then 'job.done' else 'document.read' end,
    jsonb_build_object('type', 'job.done', 'data', jsonb_build_object('label', case when i % 5 = 0 then ${LONG} else '' end))::text,
    state, case when state = 'pending' then now() + interval '1 day' end, i % 9,
    case i % 4
      when 0 then '[]'
      when 1 then '[{"at":"2026-01-01T00:00:00.000Z","ms":12,"status":200,"body":"","error":null}]'
      when 2 then '[{"at":"2026-01-01T00:00:00.000Z","ms":10000,"status":null,"body":null,"error":"The endpoint did not answer in time"}]'
      else jsonb_build_array(jsonb_build_object('at', '2026-01-01T00:00:00.000Z', 'ms', 3, 'status', 503, 'body', ${LONG}, 'error', null))
    end::jsonb,
    now() - i * interval '1 minute', case when state <> 'pending' then now() end
  from generate_series(1, ${COUNT}) i, lateral (select (array['pending', 'delivered', 'failed'])[1 + i % 3] as state) s`

const KEYS = `
  insert into api_key (id, account_id, name, digest, hint, scopes, created_at, expires_at, last_used_at)
  select gen_random_uuid(), $1::int, case when i % 5 = 0 then ${LONG} else 'Key ' || i end, sha256(('key ' || i)::bytea), 'a1b2',
    case i % 3 when 0 then '{*:write}' when 1 then '{jobs:read}'
      else '{accounts:read,ai:write,documents:write,jobs:write,organizations:read,payments:read,webhooks:write}' end::text[],
    now() - i * interval '1 minute', case i % 3 when 1 then now() + interval '1 day' when 2 then now() + interval '1 year' end,
    case when i % 2 = 0 then now() end
  from generate_series(1, ${COUNT}) i`

const PASSKEYS = `
  insert into passkey (id, account_id, credential_id, public_key, counter, transports, name, is_synced, last_used_at)
  select gen_random_uuid(), $1::int, sha256(('passkey ' || i)::bytea), '\\x00', 0, '{}',
    case when i % 5 = 0 then ${LONG} else 'Phone ' || i end, i % 2 = 0, case when i % 3 = 0 then now() end
  from generate_series(1, ${COUNT}) i`

const SESSIONS = `
  with added as (
    insert into session (id, account_id, created_at, address, place, user_agent, device, last_used_at, last_address)
    select gen_random_uuid(), $1::int, now() - i * interval '1 minute', case when i % 3 > 0 then '203.0.113.9' end,
      case i % 4 when 1 then 'Lyon, FR' when 2 then ${LONG} end, case when i % 5 > 0 then ${LONG} end,
      case when i % 2 = 0 then 'Firefox on Linux' end, now() - i * interval '1 second', null
    from generate_series(1, ${COUNT}) i
    returning id
  )
  insert into refresh_token (digest, session_id, expires_at)
  select sha256(id::text::bytea), id, now() + interval '10 days' from added`

const IDENTITIES = `
  insert into oidc_identity (id, account_id, issuer, subject, email, last_used_at)
  select gen_random_uuid(), $1::int, 'https://' || case when i % 5 = 0 then ${LONG} else 'id' end || i || '.example.com', i::text,
    case when i % 3 > 0 then 'ann@example.com' end, case when i % 2 = 0 then now() end
  from generate_series(1, ${COUNT}) i`

const EXPORTS = `
  insert into account_export (id, account_id, sha256, byte_size, created_at)
  select gen_random_uuid(), $1::int, sha256(('export ' || i)::bytea), i * 1000, now() - i * interval '1 second'
  from generate_series(1, ${COUNT}) i`

export const fill: Fill = async ({ query, accountId }) => {
  for (const text of [KEYS, PASSKEYS, SESSIONS, IDENTITIES, EXPORTS, ENDPOINTS])
    await query(text, [accountId])
  const [endpoint] = await query(
    'select id from webhook_endpoint where account_id = $1 and not is_active order by id desc limit 1',
    [accountId],
  )
  await query(DELIVERIES, [endpoint!.id, accountId])
  return { '/account/webhooks/:endpoint_id': `/account/webhooks/${endpoint!.id}` }
}
