import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { assertRefused } from './accounts-help.ts'
import { createKey } from './api-keys-help.ts'
import { createSharedOrgs } from './orgs-help.ts'

/**
 * Endpoints of an organization receive only their creator's events. Other admins can list and stop them, but nothing
 * more.
 */

const { api, query, call, org, create, people, root: serviceAdmin } = await createSharedOrgs()
const PATH = '/api/v1/webhooks'
const TARGET = 'https://example.com/hooks'
const BODY = '{"type":"job.done"}'
const NOT_OWN = [403, 'Only the account that added the endpoint or a service admin may do this'] as const

type Caller = { readonly token: string }
interface Endpoint {
  readonly at: string
  readonly delivery: number
  readonly organization: number
}

const { id: organization, owner, admin, member, outsider } = await org()
const [adder, lowered, otherOwner] = await people(3)
for (const [{ id }, role] of [
  [adder!, 'admin'],
  [lowered!, 'admin'],
  [otherOwner!, 'owner'],
] as const)
  await query('insert into organization_member (organization_id, user_id, role) values ($1, $2, $3)', [
    organization,
    id,
    role,
  ])
const otherOrganization = await create(adder!)
const createKeyFor = async (who: Caller, organization_id: number): Promise<Caller> => ({
  token: (await createKey(api, who, { organization_id })).key,
})

const CALLERS: Readonly<Record<string, Caller>> = {
  adder: adder!,
  'its-key': await createKeyFor(adder!, organization),
  'its-other-key': await createKeyFor(adder!, otherOrganization),
  owner,
  admin,
  'admin-key': await createKeyFor(admin, organization),
  member,
  outsider,
  service: serviceAdmin,
}

/** Inserts a disabled endpoint with a failed delivery. */
async function createEndpoint({ id }: { id: number } = adder!): Promise<Endpoint> {
  const [made] = await query(
    `insert into webhook_endpoint (secret, account_id, organization_id, url, host, events, is_active)
     values ('aaaaaaaa.AAAA', $1, $2, $3, 'example.com', '{document.read}', false) returning id`,
    [id, organization, TARGET],
  )
  const [delivery] = await query(
    `insert into webhook_delivery (endpoint_id, type, body, status, due_at, ended_at, answers)
     values ($1, 'job.done', $2, 'failed', null, now(),
       '[{"at":"2026-01-01T00:00:00.000Z","ms":3,"status":500,"body":"no","error":null}]') returning id`,
    [made!.id, BODY],
  )
  return { at: `${PATH}/${made!.id}`, delivery: Number(delivery!.id), organization }
}

const makePatch =
  (json: object) =>
  ({ token }: Caller, { at }: Endpoint) =>
    api.call('PATCH', at, { token, json })
const makeRequest =
  (method: string, path: (of: Endpoint) => string) =>
  ({ token }: Caller, of: Endpoint) =>
    api.call(method, path(of), { token })

const ACTIONS: Readonly<Record<string, ReturnType<typeof makePatch>>> = {
  list: makeRequest('GET', (of) => `${PATH}?organization_id=${of.organization}`),
  get: makeRequest('GET', ({ at }) => at),
  describe: makePatch({ description: 'ours' }),
  'switch-off': makePatch({ is_active: false }),
  'switch-on': makePatch({ is_active: true }),
  'set-url': makePatch({ url: 'https://other.example.com/' }),
  'set-events': makePatch({ events: ['payment.changed', 'send.changed', 'job.done'] }),
  'describe-and-set-url': makePatch({ description: 'ours', url: 'https://other.example.com/' }),
  'roll-secret': makeRequest('POST', ({ at }) => `${at}/secret`),
  deliveries: makeRequest('GET', ({ at }) => `${at}/deliveries`),
  delivery: makeRequest('GET', ({ at, delivery }) => `${at}/deliveries/${delivery}`),
  'no-delivery': makeRequest('GET', ({ at }) => `${at}/deliveries/999999`),
  send: makeRequest('POST', ({ at, delivery }) => `${at}/deliveries/${delivery}/send`),
  'send-none': makeRequest('POST', ({ at }) => `${at}/deliveries/999999/send`),
  delete: makeRequest('DELETE', ({ at }) => at),
}

const RIGHTS_TABLE = `
                      adder its-key its-other-key owner admin admin-key member outsider service
list                  200   200     403           200   200   200       403    403      403
get                   200   200     404           200   200   200       404    404      200
describe              200   200     404           200   200   200       404    404      200
switch-off            200   200     404           200   200   200       404    404      200
switch-on             200   200     404           403   403   403       404    404      200
set-url               200   200     404           403   403   403       404    404      200
set-events            200   200     404           403   403   403       404    404      200
describe-and-set-url  200   200     404           403   403   403       404    404      200
roll-secret           200   200     404           403   403   403       404    404      200
deliveries            200   200     404           403   403   403       404    404      200
delivery              200   200     404           403   403   403       404    404      200
no-delivery           404   404     404           403   403   403       404    404      404
send                  202   202     404           403   403   403       404    404      202
send-none             404   404     404           403   403   403       404    404      404
delete                204   204     404           204   204   204       404    404      204
`

const readState = async ({ at, delivery }: Endpoint) =>
  (
    await query(
      `select e.url, e.events, e.description, e.is_active, e.secret_version, e.deleted_at, d.status, d.due_at
       from webhook_endpoint e join webhook_delivery d on d.endpoint_id = e.id where e.id = $1 and d.id = $2`,
      [at.split('/').at(-1), delivery],
    )
  )[0]

describe('an endpoint of an organization', () => {
  const [head, ...lines] = RIGHTS_TABLE.trim().split('\n')
  const names = head!.trim().split(/\s+/)
  for (const line of lines) {
    const [action, ...statuses] = line.split(/\s+/)
    test(`grants the right to ${action} as in the table`, async () => {
      for (const [n, name] of names.entries()) {
        const one = await createEndpoint()
        const before = await readState(one)
        const answer = await ACTIONS[action!]!(CALLERS[name]!, one)
        assert.equal(answer.status, Number(statuses[n]), `${name}: ${answer.text}`)
        if (answer.status < 400) continue
        if (answer.status === 403 && action !== 'list') assertRefused(answer, ...NOT_OWN, name)
        assert.deepEqual(await readState(one), before, name)
      }
    })
  }

  test('belongs to the account that added it, whatever role that account has later', async () => {
    const one = await createEndpoint(lowered!)
    await call(owner, 'PATCH', `/${organization}/members/${lowered!.id}`, { query: { role: 'member' } })
    assert.equal((await ACTIONS['set-url']!(lowered!, one)).status, 200)
    assert.equal((await ACTIONS.delivery!(lowered!, one)).json.body, BODY)
    assertRefused(await ACTIONS.delivery!(otherOwner!, one), ...NOT_OWN)
    await call(owner, 'DELETE', `/${organization}/members/${lowered!.id}`)
    assert.equal((await ACTIONS.get!(lowered!, one)).status, 404)
  })

  test('can be enabled by its owner after another admin disabled it', async () => {
    const json = { url: TARGET, events: ['job.done'], organization_id: organization }
    const added = await api.post(PATH, { token: owner.token, json })
    const one = { at: `${PATH}/${added.json.id}`, delivery: 0, organization }
    const off = await ACTIONS['switch-off']!(admin, one)
    assert.deepEqual([off.json.is_active, off.json.account_id], [false, owner.id])
    assertRefused(await ACTIONS['switch-on']!(admin, one), ...NOT_OWN)
    assert.equal((await ACTIONS['switch-on']!(owner, one)).json.is_active, true)
  })

  test('never shows its secret to another admin, even just after it was rolled', async () => {
    const { at } = await createEndpoint()
    const headers = { 'idempotency-key': randomUUID() }
    const roll = ({ token }: Caller) => api.post(`${at}/secret`, { token, headers })
    const { secret } = (await roll(adder!)).json
    assert.equal((await roll(adder!)).json.secret, secret)
    assertRefused(await roll(admin), ...NOT_OWN)
    for (const who of [admin, otherOwner!]) {
      const list = await api.get(`${PATH}?organization_id=${organization}&limit=1000`, who)
      for (const { text } of [list, await api.get(at, who)]) assert.ok(!text.includes(secret))
    }
  })

  test("hides its owner's payments from other admins", async () => {
    const json = { url: TARGET, events: ['document.read', 'payment.changed'], organization_id: organization }
    const added = await api.post(PATH, { token: owner.token, json })
    await query(
      `with c as (insert into payment_customer (user_id, provider_customer_id) values ($1, $2) returning id)
       insert into payment_subscription (customer_id, provider_subscription_id, facts)
       select id, $3, '{"plan_name":[1,"private"],"status":[1,"active"]}' from c`,
      [owner.id, `cus_${randomUUID()}`, `sub_${randomUUID()}`],
    )
    const at = `${PATH}/${added.json.id}/deliveries`
    const [told] = (await api.get(at, owner)).json
    assert.equal(told.type, 'payment.changed')
    assert.match((await api.get(`${at}/${told.id}`, owner)).text, /private/)
    for (const path of [at, `${at}/${told.id}`]) assertRefused(await api.get(path, admin), ...NOT_OWN)
  })
})

test('only admins and owners can add endpoints to an organization', async () => {
  const other = await org()
  const json = { url: TARGET, events: ['job.done'], organization_id: other.id }
  const callers = [
    ...[other.owner, other.admin, await createKeyFor(other.admin, other.id)],
    ...[await createKeyFor(owner, organization), other.member, other.outsider, serviceAdmin],
  ]
  const answers = await Promise.all(callers.map(({ token }) => api.post(PATH, { token, json })))
  assert.deepEqual(
    answers.map(({ status }) => status),
    [201, 201, 201, 403, 403, 403, 403],
  )
})
