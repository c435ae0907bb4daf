import type { Fill } from './fill.ts'

// A name of the maximum length, without a break.
const LONG = `left(repeat('Papiermühlenbetriebsgesellschaft', 7), 200)`

/** The organizations of the account, of which the last has 10,000 members, invites, keys and webhooks. */
export const fill: Fill = async ({ query, accountId }) => {
  await query(
    `with made as (
       insert into organization (name, slug, description, is_active, created_by, created_at)
       select case when n % 50 = 0 then ${LONG} when n % 50 = 1 then 'A' else 'Mill ' || n end, 'filled-' || n,
         case when n % 3 = 0 then null when n % 50 = 1 then repeat('A mill on the river. ', 90) else 'Mill number ' || n end,
         n % 20 > 0, $1, now() - n * interval '1 minute'
       from generate_series(1, 10000) n returning id
     ) insert into organization_member (organization_id, user_id, role)
     select id, $1, (array['owner', 'admin', 'member'])[1 + id % 3] from made`,
    [accountId],
  )
  const [org] = await query(`select max(id) as id from organization`)
  const id = org!.id as number
  await query(`update organization_member set role = 'owner' where organization_id = $1`, [id])
  await query(`update organization set name = ${LONG}, description = repeat('Paper ', 300) where id = $1`, [
    id,
  ])
  await query(
    `with made as (
       insert into account (email, password_hash, full_name, is_verified)
       select case when n % 50 = 0 then repeat('member', 38) || n else 'member-' || n end || '@example.com', 'x',
         case when n % 3 = 0 then null when n % 50 = 1 then ${LONG} else 'Member ' || n end, true
       from generate_series(1, 10000) n returning id
     ) insert into organization_member (organization_id, user_id, role)
     select $1, id, (array['member', 'admin', 'owner'])[1 + id % 3] from made`,
    [id],
  )
  await query(
    `insert into organization_invite (organization_id, email, role, invited_by, created_at, expires_at)
     select $1, case when n % 50 = 0 then repeat('invited', 33) || n else 'invited-' || n end || '@example.com',
       (array['member', 'admin', 'owner'])[1 + n % 3], $2, now() - n * interval '1 second', now() + n * interval '1 minute'
     from generate_series(1, 10000) n`,
    [id, accountId],
  )
  await query(
    `insert into api_key (id, account_id, organization_id, name, digest, hint, scopes, created_at, expires_at, last_used_at)
     select gen_random_uuid(), $2, $1, case when n % 50 = 0 then repeat('k', 100) else 'Key ' || n end, sha256(('org' || n)::bytea), 'abcd',
       case when n % 2 = 0 then array['*:read'] else array['organizations:read', 'webhooks:write', 'worker-queues:write'] end,
       now() - n * interval '1 minute', case when n % 3 = 0 then now() + (n - 300) * interval '1 hour' end, case when n % 4 = 0 then now() - interval '1 day' end
     from generate_series(1, 10000) n`,
    [id, accountId],
  )
  // Only one is active, because each active endpoint gets every event of the other rows.
  await query(
    `insert into webhook_endpoint (secret, account_id, organization_id, url, host, events, description, is_active, failures, failing_since, disabled_at, proved_at)
     select 'aaaaaaaa.AAAA', $2, $1, 'https://hooks.example.com/' || case when n % 50 = 0 then repeat('x', 1500) else n::text end, 'hooks.example.com',
       case when n % 2 = 0 then array['job.done'] else array['job.done', 'job.failed', 'job.cancelled', 'batch.done', 'document.read', 'send.changed', 'payment.changed', 'post.published'] end,
       case when n % 3 = 0 then null when n % 50 = 1 then repeat('w', 500) else 'Tickets' end, n = 2, case when n % 4 = 0 then n else 0 end,
       case when n % 4 = 0 then now() end, case when n % 5 = 0 then now() end, case when n % 6 > 0 then now() end
     from generate_series(1, 10000) n`,
    [id, accountId],
  )
  return { '/organizations/:org_id': `/organizations/${id}` }
}
