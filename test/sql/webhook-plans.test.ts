import { after, describe, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import type { Query } from '../../sql/db.ts'
import { deleteMember, markOrganizationDeleted } from '../../sql/orgs/orgs.ts'
import {
  addChallenge,
  addJobCallbacks,
  addTestDelivery,
  claimDeliveries,
  findDisabledEndpoint,
  insertEndpoint,
  listDueEndpoints,
  listEndpointOwners,
  lockManagedEndpoint,
  markEndpointDeleted,
  markEndpointVerified,
  purgeEndpoints,
  readDeliveries,
  readDelivery,
  readEndpoint,
  readEndpoints,
  readOrganizationEndpoints,
  readServiceEndpoints,
  recordDeliveryAttempt,
  redeliverWebhook,
  rollSecret,
  updateEndpoint,
} from '../../sql/webhooks/webhooks.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { SEALED_TEXT } from '../keys.ts'
import { assertWriteByIndex, fillOrganizations, planRead, testReads } from './plans-help.ts'

/** Endpoints, deliveries and callbacks use an index, with 2000 endpoints and 10,000 deliveries. */

const { url, query } = await createTestDatabase()
await fillOrganizations(query)
await query(
  `insert into webhook_endpoint (secret, account_id, organization_id, url, host, events)
   select 'aaaaaaaa.AAAA', n, case when n % 2 = 0 then 1 + (n - 1) / 5 end, 'https://example.com/', 'example.com', '{job.done}' from generate_series(1, 2000) n`,
)
await query(
  `insert into webhook_endpoint (secret, account_id, url, host, events)
   select 'aaaaaaaa.AAAA', null, 'https://example.com/', 'example.com', '{send.changed}' from generate_series(1, 20)`,
)
await query(
  `insert into webhook_delivery (endpoint_id, type, body, status, due_at, ended_at)
   select 1 + n % 2000, 't', '{}', state, case state when 'pending' then now() end, case state when 'pending' then null else now() end
   from generate_series(1, 10000) n,
     lateral (select case when n % 50 = 0 then 'pending' when n % 7 = 0 then 'failed' else 'delivered' end as state) x`,
)
await query(
  `insert into job (id, name, queue, owner_id, mailbox, payload, status, max_tries)
   select ('01980000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'n', 'q', 1 + n % 2000, 'm' || n, '{}', 'available', 1
   from generate_series(1, 6000) n`,
)
await query(`insert into job_callback (job_id, endpoint_id, url, host)
  select id, 1 + ordinal % 2000, 'https://example.com/', 'example.com' from job where ordinal > 4000`)
await vacuumAnalyze(query)

const client = await connect({ url, applicationName: 'plans' })
after(() => client.end())

const ALL = [null, 0, 100] as const
const reads = [
  planRead('the endpoints of an account', readEndpoints, 5, ...ALL),
  planRead('the endpoints of an organization', readOrganizationEndpoints, 5, 21, ...ALL),
  planRead('the endpoints of the service', readServiceEndpoints, ...ALL),
  planRead('an endpoint', readEndpoint, 5, 5, false, null),
  planRead('deliveries', readDeliveries, 5, 5, false, null, null, ...ALL),
  planRead('deliveries of a status', readDeliveries, 5, 5, false, null, 'failed', ...ALL),
  planRead('a delivery', readDelivery, 5, 5, false, null, 4),
] as const

describe('reads by index', () => {
  testReads(client, reads)
})

let endpoint = 100
// Every fiftieth delivery is waiting.
let delivery = 100
let job = 100
let organization = 200
const ANSWER = { at: '2026-01-01T00:00:00.000Z', ms: 1, status: 500, body: '', error: null }
const formatJobId = (n: number): string => `01980000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
const newEndpoint = {
  accountId: 5,
  organizationId: 1,
  url: 'https://example.com/',
  host: 'example.com',
  events: ['job.done'],
  description: null,
  keyId: null,
  secret: SEALED_TEXT,
}

const RATE = { max: 10, seconds: 60 }
const LIMITS = { max: 8, holdSeconds: 45, rates: { verified: RATE, unverified: RATE } }
const nextPending = (): number => {
  delivery += 50
  return delivery
}

const writes: Readonly<Record<string, () => Query<unknown>>> = {
  'adding an endpoint': () => insertEndpoint(newEndpoint),
  'locking an endpoint': () => lockManagedEndpoint(5, [5, false, null]),
  'changing an endpoint': () => updateEndpoint(++endpoint, { description: 'd' }),
  'rolling a secret': () => rollSecret(++endpoint, SEALED_TEXT),
  'hiding an endpoint': () => markEndpointDeleted(++endpoint),
  redelivering: () => redeliverWebhook(1 + (++delivery % 2000), delivery),
  'a callback': () =>
    addJobCallbacks([formatJobId(++job)], {
      accountId: 5,
      url: 'https://example.com/',
      host: 'example.com',
      keyId: null,
      secret: SEALED_TEXT,
    }),
  'listing due endpoints': listDueEndpoints,
  'verifying an endpoint': () => markEndpointVerified(++endpoint, 'https://example.com/'),
  'a challenge': () => addChallenge(++endpoint, 'token'),
  'a test delivery': () => addTestDelivery(++endpoint, { type: null, data: null }),
  'the owners of an endpoint': () => listEndpointOwners(++endpoint),
  'the owners of an endpoint of the service': () => listEndpointOwners(2001),
  'claiming due deliveries': () => claimDeliveries(1 + (nextPending() % 2000), 'example.com', LIMITS),
  'settling a delivery': () => recordDeliveryAttempt(nextPending(), 'failed', ANSWER, [1000]),
  'finding a disabled endpoint': () => findDisabledEndpoint(++endpoint, 5),
  'purging deleted endpoints': () => purgeEndpoints(2),
  'the end of a membership': () => deleteMember(++organization, organization * 5 - 3),
  'the end of an organization': () => markOrganizationDeleted(++organization),
}

describe('writes by index', () => {
  for (const [what, make] of Object.entries(writes))
    test(what, () => assertWriteByIndex(client, make, 'webhook'))

  test('ending jobs', async () => {
    await client.query(
      `update job set status = 'cancelled', finished_at = now() where ordinal between 4500 and 4600`,
    )
    let n = 4500
    await assertWriteByIndex(
      client,
      () =>
        ({
          ...findDisabledEndpoint(1, 1),
          sql: `select webhook_jobs_ended(array['${formatJobId(++n)}']::uuid[])`,
          values: [],
        }) as never,
      'job_callback',
    )
  })
})
