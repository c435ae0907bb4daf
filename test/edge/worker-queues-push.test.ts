import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { SEALED_TEXT } from '../keys.ts'
import { answerWith, type ReceivedWebhook, type Receiver, startReceiver } from '../standins/receiver.ts'
import { until } from '../until.ts'
import { assertRefused, createCast } from './accounts-help.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { startOwnWorker } from './own-worker.ts'
import { type Caller, createWorkerHelp } from './worker-queues-help.ts'

/** Jobs of a worker queue are sent to its endpoint. */

const { api, query, url } = await startEdgeAndDatabase()
const { admin, newcomer } = await createCast(api)
await startOwnWorker(url, 'push', {})
const { send, addQueue, add, claim, take, renew, reported, readJob } = createWorkerHelp(api)
const SECRET = `whsec_${Buffer.from('a secret of at least 24 bytes').toString('base64')}`

async function receiving(answer: Receiver['answer']): Promise<Receiver> {
  const receiver = await startReceiver()
  after(() => receiver.stop())
  receiver.answer = answer
  return receiver
}

const ended = (who: Caller, id: string) =>
  until('the job has ended', async () => {
    const job = await readJob(who, id)
    return job.finished_at === null ? null : job
  })

const json = (body: unknown) => answerWith(200, JSON.stringify(body))

/** The body of a request. */
const bodyOf = (request: ReceivedWebhook | undefined) =>
  request!.message as unknown as {
    readonly job_id: string
    readonly lease_id: string
    readonly deadline: string
  }

test('a job is sent, signed, and its result is the answer', async () => {
  const user = await newcomer()
  const receiver = await receiving(json({ sum: 3 }))
  const endpoint = { url: `${receiver.url}/run`, secret: SECRET }
  const queue = await addQueue(user, { endpoint })
  const id = await add(user, queue, { a: 1 })
  const { status, result, attempts } = await ended(user, id)
  assert.deepEqual([status, result, attempts], ['done', { sum: 3 }, 1])
  const [request] = receiver.received
  assert.equal(request!.headers['webhook-id'], `${id}.1`)
  new Webhook(SECRET).verify(request!.body, request!.headers as Record<string, string>)
  const { deadline, lease_id, ...body } = bodyOf(request)
  assert.ok(deadline && lease_id)
  assert.deepEqual(body, {
    ...{ job_id: id, queue, task: 'work', args: { a: 1 }, attempt: 1, tries: 1, max_tries: 3 },
    ...{ dependencies: [], traceparent: null, lease_seconds: 600 },
  })
  assert.deepEqual(await query('select from worker_lease where queue = $1', [queue]), [])
  assertRefused(
    await claim(user, queue),
    409,
    'The jobs of this queue are sent to its endpoint; workers cannot claim them',
  )
  assert.ok(!(await send(user, 'GET', `/api/v1/worker-queues/${queue}`)).text.includes('whsec_'))
})

test('an endpoint that takes a job reports its end later', async () => {
  const user = await newcomer()
  const receiver = await receiving(answerWith(202))
  const queue = await addQueue(user, { endpoint: { url: receiver.url } })
  const id = await add(user, queue)
  await until('the job is handed over', async () => {
    const text = `select from job join worker_lease l on l.id = lease_id where job.id = $1 and l.queue = $2`
    return (await query(text, [id, queue])).length > 0
  })
  const lease = bodyOf(receiver.received[0]).lease_id
  assert.deepEqual(await reported(user, lease, [{ job_id: id, attempt: 1, progress: { label: 'On it' } }]), [
    'ok',
  ])
  assert.equal((await readJob(user, id)).label, 'On it')
  const jobs = [{ job_id: id, attempt: 1 }]
  assert.deepEqual((await renew(user, lease, { jobs })).json.superseded, [])
  assert.deepEqual(await reported(user, lease, [{ ...jobs[0], done: { result: 5 } }]), ['ok'])
  assert.deepEqual([(await ended(user, id)).result, receiver.received.length], [5, 1])
})

test('an endpoint may report before its own answer has arrived', async () => {
  const user = await newcomer()
  const held = Promise.withResolvers<ServerResponse>()
  const receiver = await receiving((response) => held.resolve(response))
  const queue = await addQueue(user, { endpoint: { url: receiver.url } })
  const id = await add(user, queue)
  const response = await held.promise
  const lease = bodyOf(receiver.received[0]).lease_id
  assert.deepEqual(await reported(user, lease, [{ job_id: id, attempt: 1, done: { result: 'early' } }]), [
    'ok',
  ])
  response.writeHead(202).end()
  assert.equal((await ended(user, id)).result, 'early')
})

test('failed tries, pauses, and results that do not match', async () => {
  const user = await newcomer()
  const answers: Receiver['answer'][] = [
    answerWith(500),
    (response) => response.writeHead(429, { 'retry-after': '0' }).end(),
    answerWith(503),
    answerWith(200, '{no json'),
    (response) => response.destroy(),
    json('done'),
  ]
  const receiver = await receiving((response, request) => answers.shift()!(response, request))
  const queue = await addQueue(user, { endpoint: { url: receiver.url } })
  await send(user, 'PUT', `/api/v1/worker-queues/${queue}/tasks/work`, {
    max_tries: 4,
    result: { type: 'string' },
  })
  const id = await add(user, queue)
  const hurry = setInterval(() => {
    void query(`update job set run_at = now() where id = $1 and status = 'scheduled'`, [id])
  }, 50)
  const job = await ended(user, id)
  clearInterval(hurry)
  assert.deepEqual([job.status, job.result, job.attempts], ['done', 'done', 6])
  const [row] = await query('select tries from job where id = $1', [id])
  assert.equal(row!.tries, 4)
  receiver.answer = json(7)
  const { error } = await ended(user, await add(user, queue))
  assert.deepEqual(error, {
    code: 'worker_job.result_invalid',
    detail: 'The result does not match the schema of the task: must be string',
  })
})

test('a secret that no key opens fails the job, and nothing is sent', async () => {
  const user = await newcomer()
  const receiver = await receiving(json(1))
  const queue = await addQueue(user, { endpoint: { url: receiver.url } })
  await query('update worker_queue set endpoint_secret = $2 where name = $1', [queue, SEALED_TEXT])
  const { status, error, attempts } = await ended(user, await add(user, queue))
  assert.deepEqual([status, error.code, attempts], ['failed', 'worker_job.endpoint_failed', 1])
  assert.match(error.detail, /its secret cannot be decrypted; set the endpoint again/)
  assert.deepEqual(receiver.received, [])
})

test('no more jobs than the concurrency are sent at a time, and a cancelled one is cut short', async () => {
  const user = await newcomer()
  const open: ServerResponse[] = []
  const receiver = await receiving((response) => open.push(response))
  const queue = await addQueue(user, { endpoint: { url: receiver.url, concurrency: 2 } })
  const ids = [await add(user, queue), await add(user, queue), await add(user, queue)]
  await until('two are sent', () => open.length === 2)
  const [{ running }] = (await query('select sum(running)::int as running from job_count where queue = $1', [
    queue,
  ])) as [{ running: number }]
  assert.equal(running, 2)
  const first = bodyOf(receiver.received[0]).job_id
  await send(user, 'DELETE', `/api/v1/jobs/${first}`)
  assert.equal((await ended(user, first)).status, 'cancelled')
  await until('the third is sent', () => open.length === 3)
  for (const response of open.slice(1)) response.writeHead(200).end('1')
  for (const id of ids.filter((one) => one !== first)) assert.equal((await ended(user, id)).result, 1)
})

test('the endpoint is replaced and removed, and an address that is not allowed is refused', async () => {
  const user = await newcomer()
  const [old, fresh] = [await receiving(json('old')), await receiving(json('new'))]
  const queue = await addQueue(user, { endpoint: { url: old.url } })
  const path = `/api/v1/worker-queues/${queue}`
  const changed = await send(user, 'PATCH', path, { endpoint: { url: fresh.url, secret: SECRET } })
  assert.equal(changed.json.endpoint.secret, SECRET)
  const keyed = {
    token: user.token,
    headers: { 'idempotency-key': 'one' },
    json: { name: 'keyed-queue', endpoint: { url: old.url } },
  }
  const first = await api.post('/api/v1/worker-queues', keyed)
  assert.match(first.json.endpoint.secret, /^whsec_/)
  assert.deepEqual((await api.post('/api/v1/worker-queues', keyed)).json, first.json)
  const stored = await query(
    `select from idempotency_key where convert_from(coalesce(body, ''), 'utf8') like '%whsec_%'`,
  ).catch(() => [])
  assert.deepEqual(stored, [])
  assert.equal((await ended(user, await add(user, queue))).result, 'new')
  await send(admin, 'POST', `/api/v1/queues/${queue}/pause`)
  const id = await add(user, queue)
  assert.equal((await send(user, 'PATCH', path, { endpoint: null })).json.endpoint, null)
  await send(admin, 'POST', `/api/v1/queues/${queue}/resume`)
  assert.equal((await take(user, queue, { wait_seconds: 30 })).jobs[0]!.job_id, id)
  for (const wrong of [
    'ftp://example.com',
    'http://10.0.0.1/',
    'https://user:pass@example.com/',
    'nothing',
  ]) {
    const answer = await send(user, 'PATCH', path, { endpoint: { url: wrong } })
    assert.equal(answer.status, 422, wrong)
  }
})
