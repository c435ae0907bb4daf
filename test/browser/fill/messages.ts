import type { Fill } from './fill.ts'

/** Sends in each state, suppressions and templates, 10,000 of each. */
export const fill: Fill = async ({ query, accountId }) => {
  await query(
    `insert into comms_send (id, channel, stream, owner_id, job_id, recipients, deliveries, message, status, template, send_at, requests, next_attempt_at,
       provider_id, error_code, detail, created_at, requested_at, settled_at)
     select gen_random_uuid(), channel, case when n % 4 = 0 and channel = 'email' then 'broadcast' else 'transactional' end, $1, gen_random_uuid(), addresses,
       (select jsonb_agg(jsonb_build_object('address', address, 'status', state, 'detail', detail)) from unnest(addresses) address),
       '{"subject": "Hello"}', state, case when n % 3 = 0 then 'template-' || n end, case state when 'scheduled' then now() + n * interval '1 minute' end, n % 4,
       case when state = 'queued' and n % 20 < 10 then now() + interval '1 hour' end, case when state in ('delivered', 'bounced', 'complained') then 'p' || n end,
       case state when 'failed' then 'comms.refused' end, detail, now() - n * interval '1 minute',
       case when state not in ('scheduled', 'queued', 'cancelled') then now() end, case when state not in ('scheduled', 'queued', 'sending') then now() end
     from generate_series(1, 10000) n,
       lateral (select case when n % 10 < 8 then 'email' when n % 10 = 8 then 'sms' else 'call' end as channel,
         (array['scheduled', 'queued', 'sending', 'sent', 'failed', 'unknown', 'cancelled', 'delivered', 'bounced', 'complained'])[1 + n / 3 % 10] as state) of_it,
       lateral (select case when channel <> 'email' then array['+1415555' || n] when n % 50 = 0 then array[repeat('reader', 38) || '@example.com']
           when n % 50 = 1 then (select array_agg('reader-' || k || '@example.com') from generate_series(1, 50) k) else array['reader-' || n || '@example.com'] end as addresses,
         case when state in ('failed', 'bounced', 'unknown') then case when n % 7 = 0 then repeat('Refused', 100) else 'The mailbox does not exist' end end as detail) more`,
    [accountId],
  )
  await query(
    `insert into comms_suppression (channel, address, stream, reason, send_id, created_at)
     select case when n % 10 = 0 then 'sms' else 'email' end,
       case when n % 10 = 0 then '+1415555' || n when n % 50 = 1 then repeat('gone', 50) || n || '@example.com' else 'gone-' || n || '@example.com' end,
       case when n % 10 > 0 and n % 3 = 0 then 'broadcast' else 'transactional' end,
       case when n % 10 = 0 then 'opted_out' else (array['bounced', 'complained', 'unsubscribed'])[1 + n % 3] end, gen_random_uuid(), now() - n * interval '1 minute'
     from generate_series(1, 10000) n`,
  )
  await query(
    `insert into comms_template (name, channel, subject, text, html, variables)
     select case when n % 50 = 0 then rpad('template-' || n || '-', 64, 'x') else 'template-' || n end, channel,
       case when channel = 'email' then case when n % 50 = 1 then repeat('Subject', 140) else 'Hello {{name}}' end end, 'Hello {{name}}',
       case when channel = 'email' and n % 2 = 0 then '<p>Hello {{name}}</p>' end,
       case when n % 50 = 2 then (select jsonb_agg(jsonb_build_object('name', 'variable_' || k)) from generate_series(1, 50) k) else '[{"name": "name"}]' end
     from generate_series(1, 10000) n, lateral (select case when n % 5 = 0 then 'sms' else 'email' end as channel) of_it`,
  )
  const [send] = await query(
    `select id from comms_send where owner_id = $1 and cardinality(recipients) = 50 limit 1`,
    [accountId],
  )
  return { '/messages/:send_id': `/messages/${String(send!.id)}` }
}
