import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { assertRefused } from './accounts-help.ts'
import { createKey } from './api-keys-help.ts'
import { createSharedOrgs } from './orgs-help.ts'
import { createWorkerHelp, waitForClaim } from './worker-queues-help.ts'

/** Access to worker queues: to use, to manage and to work for them. */

const world = await createSharedOrgs()
const { api, org, query } = world
const { send, addQueue, add, claim, take, renew, report } = createWorkerHelp(api)
const MISSING = [404, 'Worker queue not found'] as const
const RANK_TOO_LOW = [403, 'This requires the role admin or owner in the organization'] as const
const QUEUES = '/api/v1/worker-queues'

test('a queue of an account is unknown to others', async () => {
  const { owner, outsider } = await org()
  const queue = await addQueue(owner)
  const id = await add(owner, queue)
  const { lease } = await take(owner, queue)
  const requests = [
    ['GET', `${QUEUES}/${queue}`],
    ['PATCH', `${QUEUES}/${queue}`, { open: false }],
    ['DELETE', `${QUEUES}/${queue}`],
    ['PUT', `${QUEUES}/${queue}/tasks/work`, {}],
    ['DELETE', `${QUEUES}/${queue}/tasks/work`],
    ['POST', `${QUEUES}/${queue}/claims`, { worker: 'w' }],
  ] as const
  for (const [method, path, json] of requests)
    assertRefused(await send(outsider, method, path, json), ...MISSING, `${method} ${path}`)
  assertRefused(
    await send(outsider, 'GET', `${QUEUES}/${queue}/tasks/work`),
    404,
    'The queue has no such task',
  )
  const unknown = await send(outsider, 'POST', '/api/v1/tasks/enqueue', {
    queue_type: queue,
    task_name: 'work',
  })
  assertRefused(unknown, 400, `There is no queue named ${queue}; the queues are load_test, system`)
  const gone = 'The lease has expired or was returned; its jobs run elsewhere. Claim again'
  assertRefused(await renew(outsider, lease), 404, gone)
  assertRefused(await report(outsider, lease, [{ job_id: id, attempt: 1, done: {} }]), 404, gone)
  assertRefused(await send(outsider, 'DELETE', `/api/v1/workers/leases/${lease}`), 404, gone)
  assert.deepEqual((await send(outsider, 'GET', QUEUES)).json, [])
  assert.equal((await renew(owner, lease)).status, 200)
})

test('members of an organization add jobs; its admins and owners work and manage', async () => {
  const { id, owner, admin, member, outsider } = await org()
  const refused = await send(member, 'POST', QUEUES, { name: 'member-queue', organization_id: id })
  assertRefused(refused, ...RANK_TOO_LOW)
  const queue = await addQueue(admin, { organization_id: id })
  for (const one of [owner, admin, member]) await add(one, queue)
  assert.equal((await send(member, 'GET', `${QUEUES}/${queue}`)).json.queued, 3)
  assertRefused(await claim(member, queue), ...RANK_TOO_LOW)
  assertRefused(await send(member, 'DELETE', `${QUEUES}/${queue}`), ...RANK_TOO_LOW)
  assertRefused(await claim(outsider, queue), ...MISSING)
  const { jobs, lease } = await take(owner, queue)
  assert.equal(jobs.length, 3)
  const [worker] = await query('select queue, queues, info, ttl_seconds from worker_lease where id = $1', [
    lease,
  ])
  assert.deepEqual(worker, { queue, queues: [queue], info: {}, ttl_seconds: 30 })
  // A lease of another queue cannot be used for this one.
  const other = await addQueue(owner)
  assertRefused(
    await claim(owner, other, { lease_id: lease }),
    409,
    'The lease id is in use; choose another one',
  )
})

test('an API key needs the scope to work, and one of an organization reaches only its queues', async () => {
  const { id, owner } = await org()
  const [shared, own] = [await addQueue(owner, { organization_id: id }), await addQueue(owner)]
  const keyWith = async (scopes: string[], organization_id?: number) => ({
    token: (
      await createKey(api, owner, { scopes, ...(organization_id === undefined ? {} : { organization_id }) })
    ).key,
  })
  const worker = await keyWith(['worker-queues:work'])
  assert.equal((await claim(worker, own)).status, 200)
  const none = await send(worker, 'GET', `${QUEUES}/${own}`)
  assert.deepEqual([none.status, none.json.code], [403, 'auth.scope'])
  const adder = await keyWith(['tasks:write'])
  await add(adder, own)
  const refused = await claim(adder, own)
  assert.deepEqual([refused.status, refused.json.code], [403, 'auth.scope'])
  const limited = await keyWith(['worker-queues:work', 'worker-queues:write'], id)
  assert.equal((await claim(limited, shared)).status, 200)
  assertRefused(await claim(limited, own), ...MISSING)
  const { json } = await send(limited, 'GET', QUEUES)
  assert.deepEqual(
    json.map(({ name }: { name: string }) => name),
    [shared],
  )
})

test('an owner who is deactivated gets no more jobs', async () => {
  const { id, owner, admin } = await org()
  const own = await addQueue(owner)
  const shared = await addQueue(owner, { organization_id: id })
  const lease_id = randomUUID()
  const waiting = claim(owner, own, { lease_id, worker: 'waiting', wait_seconds: 30 })
  await waitForClaim(query, lease_id)
  const { lease } = await take(admin, shared)
  await query('update account set is_active = false where id = $1', [owner.id])
  await query('select pg_notify($1, $2)', ['account_changed', String(owner.id)])
  // Somebody adds a job nevertheless.
  const job = randomUUID()
  await query(
    `select job_enqueue(jsonb_build_array(jsonb_build_object('id', $1::uuid, 'name', $2::text || '/work', 'queue', $2::text, 'mailbox', $2::text || '/work/0',
      'when_busy', 'wait', 'payload', '{}'::jsonb, 'max_tries', 3)))`,
    [job, own],
  )
  assert.equal((await waiting).status, 401)
  assert.equal((await claim(owner, own)).status, 401)
  await query('update organization set is_active = false where id = $1', [id])
  assertRefused(await claim(admin, shared), ...MISSING)
  assert.equal((await renew(admin, lease)).status, 404)
})

test('names are unique, valid, and not those of the service', async () => {
  const { owner, outsider } = await org()
  const name = await addQueue(owner)
  const taken = [409, 'The name is taken; names of queues are unique in the whole service'] as const
  assertRefused(await send(outsider, 'POST', QUEUES, { name }), ...taken)
  for (const reserved of ['system', 'documents', 'push', 'other'])
    assertRefused(await send(owner, 'POST', QUEUES, { name: reserved }), ...taken)
  for (const wrong of ['', 'Images', '1st', 'a/b', 'a b', 'x'.repeat(64)])
    assert.equal((await send(owner, 'POST', QUEUES, { name: wrong })).status, 422, wrong)
})
