import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { CHALLENGE_EVENT } from '../../sql/webhooks/webhooks.ts'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { Client, startProcess } from '../service.ts'
import { answerWith, type ReceivedWebhook, startReceiver, verifyWebhook } from '../standins/receiver.ts'
import { startMailServer } from '../standins/smtp.ts'
import { until } from '../until.ts'

/**
 * Follows webhooks from the event to the receiver. They are signed and redelivered until accepted, and their ids
 * identify duplicates.
 */

const { url, query } = await createTestDatabase()
const mail = await startMailServer()
after(() => mail.stop())
const env = {
  EMAIL_SMTP_URL: mail.url,
  EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
  LEASE_SECONDS: '1',
  WEBHOOK_RETRY_SECONDS: '0.1,0.1,0.1,0.1,30',
  WORKER_THREADS: '1',
}
const edge = await startEdge(url, { env })
const worker = await startProcess('worker', url, {
  ...env,
  WORKER_QUEUES: 'accounts,comms,documents,webhooks',
})
let count = 0

async function registerClient(): Promise<Client> {
  const client = new Client(edge.port)
  await client.register(`w${++count}@example.com`)
  return client
}

interface Endpoint {
  readonly id: number
  readonly secret: string
}

async function createEndpoint(client: Client, target: string, events: readonly string[]): Promise<Endpoint> {
  const response = await client.post('/api/v1/webhooks', { url: target, events })
  assert.equal(response.status, 201)
  return (await response.json()) as Endpoint
}

async function openReceiver() {
  const receiver = await startReceiver()
  after(() => receiver.stop())
  const receivedOfType = (type: string): ReceivedWebhook[] =>
    receiver.received.filter(({ message }) => message.type === type)
  return Object.assign(receiver, { typed: receivedOfType })
}

const parseJson = async <T>(response: Response | Promise<Response>): Promise<T> =>
  (await (await response).json()) as T

async function uploadAndExtract(client: Client, search = ''): Promise<{ id: number; jobId: string }> {
  const { id } = await parseJson<{ id: number }>(client.upload(Buffer.from(`Page ${++count}`), 'page.txt'))
  const response = await client.post(`/api/v1/documents/${id}/extract?background=true${search}`)
  assert.equal(response.status, 202, await response.clone().text())
  return { id, jobId: (await parseJson<{ job_id: string }>(response)).job_id }
}

describe('an event', () => {
  test('is signed, and reaches only endpoints of its account and type', async () => {
    const receiver = await openReceiver()
    const [client, stranger] = [await registerClient(), await registerClient()]
    const { secret } = await createEndpoint(client, `${receiver.url}/own`, ['job.done', 'document.read'])
    await createEndpoint(client, `${receiver.url}/failures`, ['job.failed', 'job.cancelled'])
    await createEndpoint(stranger, `${receiver.url}/stranger`, ['job.done', 'document.read'])
    const { id, jobId } = await uploadAndExtract(client)
    await until('both events have arrived', () => receiver.received.length >= 2)
    for (const one of receiver.received) verifyWebhook(secret, one)
    assert.ok(receiver.received.every(({ path }) => path === '/own'))
    const { data } = receiver.typed('job.done')[0]!.message
    assert.deepEqual([data.job_id, data.status, data.name], [jobId, 'done', 'documents.extract'])
    // A message outlives the settings that say how long its job is kept.
    const { expires_at, ...job } = await parseJson<Record<string, unknown>>(
      client.fetch(`/api/v1/jobs/${jobId}`),
    )
    assert.equal(typeof expires_at, 'string')
    assert.deepEqual(data, { ...job, expires_at: null })
    const read = receiver.typed('document.read')[0]!.message.data
    assert.deepEqual([read.document_id, read.job_id], [id, jobId])
    assert.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 2)
  })

  test('of a sent message or a cancelled job arrives as well', async () => {
    const receiver = await openReceiver()
    const admin = await registerClient()
    await query(`update account set role = 'admin' where id = (select max(id) from account)`)
    const { secret } = await createEndpoint(admin, receiver.url, ['send.changed', 'job.cancelled'])
    const sent = await admin.post('/api/v1/comms/email/send', {
      to: ['a@example.com'],
      subject: 's',
      text: 't',
    })
    assert.equal(sent.status, 200)
    const { task_id } = await parseJson<{ task_id: string }>(
      admin.post('/api/v1/tasks/enqueue', {
        task_name: 'io_simulation_task',
        queue_type: 'load_test',
        delay_seconds: 600,
      }),
    )
    await admin.fetch(`/api/v1/jobs/${task_id}`, { method: 'DELETE' })
    await until('both events have arrived', () => receiver.received.length === 2)
    for (const one of receiver.received) verifyWebhook(secret, one)
    const { data } = receiver.typed('send.changed')[0]!.message
    assert.deepEqual([data.channel, data.status, data.to], ['email', 'sent', ['a@example.com']])
    assert.equal(receiver.typed('job.cancelled')[0]!.message.data.job_id, task_id)
  })

  test('is signed with both secrets after one is rolled', async () => {
    const receiver = await openReceiver()
    const client = await registerClient()
    const { id, secret } = await createEndpoint(client, receiver.url, ['document.read'])
    const rolled = await parseJson<Endpoint>(client.post(`/api/v1/webhooks/${id}/secret`))
    assert.notEqual(rolled.secret, secret)
    await uploadAndExtract(client)
    await until('the event has arrived', () => receiver.received.length === 1)
    for (const one of [secret, rolled.secret]) verifyWebhook(one, receiver.received[0]!)
    await query(`update webhook_endpoint set secret_rolled_at = now() - interval '25 hours' where id = $1`, [
      id,
    ])
    await uploadAndExtract(client)
    await until('the next event has arrived', () => receiver.received.length === 2)
    verifyWebhook(rolled.secret, receiver.received[1]!)
    assert.throws(() => verifyWebhook(secret, receiver.received[1]!))
  })
})

describe('a challenge', () => {
  const readProvedAt = async (client: Client, id: number) =>
    (await parseJson<{ proved_at: string | null }>(client.fetch(`/api/v1/webhooks/${id}`))).proved_at

  test('is signed; echoing its token proves the endpoint', async () => {
    const receiver = await openReceiver()
    receiver.echoes = false
    let token = ''
    receiver.answer = (response, { message }) => {
      token = String(message.data.challenge)
      response.end(`{"challenge":"${token}"}`)
    }
    const client = await registerClient()
    const { id, secret } = await createEndpoint(client, receiver.url, ['document.read'])
    assert.equal(await readProvedAt(client, id), null)
    await until('the endpoint is proved', async () => (await readProvedAt(client, id)) !== null)
    verifyWebhook(secret, receiver.typed(CHALLENGE_EVENT)[0]!)
    assert.ok(token.length >= 43)
  })

  test('limits an unproved endpoint to ten deliveries a minute, and sends the rest after the proof', async () => {
    const receiver = await openReceiver()
    receiver.echoes = false
    const client = await registerClient()
    const { id } = await createEndpoint(client, receiver.url, ['job.done'])
    const work = { task_name: 'io_simulation_task', queue_type: 'load_test', count: 15 }
    assert.equal((await client.post('/api/v1/tasks/enqueue', work)).status, 202)
    const finished = `update job set status = 'done', finished_at = now() where owner_id = $1 and name = 'load_test.io_simulation_task' returning id`
    const [{ account_id: account }] = (await query('select account_id from webhook_endpoint where id = $1', [
      id,
    ])) as [{ account_id: number }]
    const ids = (await query(finished, [account])).map((row) => row.id)
    await query('select webhook_jobs_ended($1::uuid[])', [ids])
    await until('ten deliveries have arrived', () => receiver.received.length === 10)
    const findBackoff = () =>
      query(
        `select from webhook_rate where account_id = $1 and blocked_until > now() + interval '30 seconds'`,
        [account],
      )
    await until('the host is in backoff', async () => (await findBackoff()).length === 1)
    assert.equal(receiver.received.length, 10)
    receiver.echoes = true
    await query(
      'update webhook_rate set slots = array(select s - 61 from unnest(slots) s), blocked_until = null',
    )
    const again = await client.post(`/api/v1/webhooks/${id}/challenge`)
    assert.equal(again.status, 202)
    await until('the endpoint is proved', async () => (await readProvedAt(client, id)) !== null)
    await until('all deliveries have arrived', () => receiver.typed('job.done').length === 15)
  })
})

describe('a rejected delivery', () => {
  test('is retried as the same message until accepted, and its attempts are listed', async () => {
    const receiver = await openReceiver()
    const client = await registerClient()
    const { id, secret } = await createEndpoint(client, receiver.url, ['document.read'])
    receiver.answer = (response) =>
      receiver.received.length < 3
        ? answerWith(500, 'not today')(response, null as never)
        : response.writeHead(204).end()
    await uploadAndExtract(client)
    interface ListedDelivery {
      id: number
      type: string
      status: string
      attempts: number
      last_answer: { status: number }
    }
    const list = async () =>
      (await parseJson<ListedDelivery[]>(client.fetch(`/api/v1/webhooks/${id}/deliveries`))).filter(
        ({ type }) => type !== CHALLENGE_EVENT,
      )
    await until('the event is delivered', async () => (await list())[0]?.status === 'delivered')
    const [first, ...others] = receiver.received
    verifyWebhook(secret, first!)
    for (const other of others) {
      assert.equal(other.body, first!.body)
      assert.equal(other.headers['webhook-id'], first!.headers['webhook-id'])
      verifyWebhook(secret, other)
    }
    const [listed] = await list()
    assert.deepEqual([listed!.attempts, listed!.last_answer.status], [3, 204])
    const path = `/api/v1/webhooks/${id}/deliveries/${listed!.id}`
    interface DeliveryDetails {
      body: string
      answers: { status: number; body: string; error: null; ms: number }[]
    }
    const whole = await parseJson<DeliveryDetails>(client.fetch(path))
    assert.equal(whole.body, first!.body)
    assert.deepEqual(
      whole.answers.map(({ status, body }) => [status, body]),
      [
        [500, 'not today'],
        [500, 'not today'],
        [204, ''],
      ],
    )
    const again = await client.post(`${path}/send`)
    assert.equal(again.status, 202)
    await until('the event has been redelivered', () => receiver.received.length === 4)
    assert.equal(receiver.received[3]!.headers['webhook-id'], first!.headers['webhook-id'])
  })

  test('eventually disables its endpoint with a mail, and is redelivered after the endpoint is reactivated', async () => {
    const receiver = await openReceiver()
    receiver.answer = answerWith(503)
    const client = await registerClient()
    const { id, secret } = await createEndpoint(client, receiver.url, ['document.read'])
    const endpoint = () =>
      parseJson<{ is_active: boolean; disabled_at: string | null; failures: number }>(
        client.fetch(`/api/v1/webhooks/${id}`),
      )
    await uploadAndExtract(client)
    await until('the delivery has failed', async () => (await endpoint()).failures > 0)
    // Backdates the first failure by a day.
    await query(
      `update webhook_endpoint set failures = greatest(failures, 1), failing_since = now() - interval '1 day', blocked_until = null where id = $1`,
      [id],
    )
    await query(`update webhook_delivery set due_at = now() where endpoint_id = $1 and due_at is not null`, [
      id,
    ])
    await until('the endpoint is disabled', async () => !(await endpoint()).is_active)
    const findNotice = () => mail.raw.find((text) => text.includes('Subject: Webhook endpoint disabled'))
    await until('the mail has been sent', () => findNotice() !== undefined)
    assert.ok(findNotice()!.replaceAll('=\r\n', '').includes(receiver.url))
    // Events are dropped while the endpoint is disabled, but waiting deliveries are kept.
    const arrived = receiver.received.length
    await uploadAndExtract(client)
    receiver.answer = answerWith(204)
    const change = await client.fetch(`/api/v1/webhooks/${id}`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: '{"is_active":true}',
    })
    assert.equal(change.status, 200)
    const { is_active, disabled_at, failures } = await endpoint()
    assert.deepEqual([is_active, disabled_at, failures], [true, null, 0])
    const [delivery] = await parseJson<{ id: number; status: string }[]>(
      client.fetch(`/api/v1/webhooks/${id}/deliveries`),
    )
    if (delivery!.status === 'failed')
      await client.post(`/api/v1/webhooks/${id}/deliveries/${delivery!.id}/send`)
    await until('the event has arrived', () => receiver.received.length > arrived)
    verifyWebhook(secret, receiver.received.at(-1)!)
  })

  test('with 410 disables the endpoint immediately', async () => {
    const receiver = await openReceiver()
    receiver.answer = answerWith(410)
    const client = await registerClient()
    const { id } = await createEndpoint(client, receiver.url, ['document.read'])
    await uploadAndExtract(client)
    await until('the endpoint is disabled', async () => {
      const { is_active } = await parseJson<{ is_active: boolean }>(client.fetch(`/api/v1/webhooks/${id}`))
      return !is_active
    })
    assert.equal(receiver.received.length, 1)
  })
})

describe('a callback', () => {
  test('reports the end of a job to its URL, also for requests that join the job', async () => {
    const receiver = await openReceiver()
    const client = await registerClient()
    const callback = (path: string) => `&callback_url=${encodeURIComponent(receiver.url + path)}`
    const { id, jobId } = await uploadAndExtract(client, callback('/one?job=1'))
    const joined = await parseJson<{ job_id: string }>(
      client.post(`/api/v1/documents/${id}/extract?background=true${callback('/two')}`),
    )
    await until('both URLs are called', () => receiver.received.length >= 2)
    const receivedAt = (path: string) => receiver.received.filter((one) => one.path === path)
    assert.equal(receivedAt('/one?job=1').length, 1)
    assert.equal(receivedAt('/two').length, 1)
    assert.equal(receivedAt('/one?job=1')[0]!.message.data.job_id, jobId)
    assert.equal(receivedAt('/two')[0]!.message.data.job_id, joined.job_id)
    // The secret of the account's callback endpoint signs callbacks.
    const [endpoint] = await parseJson<{ id: number; url: null }[]>(client.fetch('/api/v1/webhooks'))
    assert.equal(endpoint!.url, null)
    const { secret } = await parseJson<Endpoint>(client.post(`/api/v1/webhooks/${endpoint!.id}/secret`))
    await uploadAndExtract(client, callback('/three'))
    await until('the third URL is called', () => receivedAt('/three').length === 1)
    verifyWebhook(secret, receivedAt('/three')[0]!)
  })

  test('is rejected without an account or a valid URL', async () => {
    const receiver = await openReceiver()
    const client = await registerClient()
    const { id } = await parseJson<{ id: number }>(client.upload(Buffer.from(`Page ${++count}`), 'page.txt'))
    const extract = (search: string) => client.post(`/api/v1/documents/${id}/extract?${search}`)
    const target = encodeURIComponent(receiver.url)
    assert.equal((await extract(`callback_url=${target}`)).status, 422)
    assert.equal((await extract('background=true&callback_url=nonsense')).status, 422)
    assert.equal((await extract('background=true&callback_url=http%3A%2F%2F10.0.0.1%2F')).status, 422)
    const nobody = new Client(edge.port)
    const chat = await nobody.post(`/api/v1/ai/chat?background=true&callback_url=${target}`, {
      message: 'hello',
    })
    assert.equal(chat.status, 409)
    assert.equal((await query('select from job where name = $1', ['ai.chat'])).length, 0)
  })
})

// This test is last because it kills the worker; the next worker needs only one thread.
test('the next worker repeats the delivery of a killed one as the same message', async () => {
  const receiver = await openReceiver()
  const client = await registerClient()
  await createEndpoint(client, receiver.url, ['document.read'])
  receiver.answer = () => {}
  await uploadAndExtract(client)
  await until('the delivery has reached the receiver', () => receiver.received.length === 1)
  await worker.kill()
  receiver.answer = answerWith(204)
  // Makes the delivery due now.
  await query(`update webhook_delivery set due_at = now() where due_at is not null`)
  await startProcess('worker', url, { ...env, WORKER_QUEUES: 'webhooks' })
  await until('the delivery is repeated', () => receiver.received.length === 2)
  const [first, second] = receiver.received
  assert.equal(second!.headers['webhook-id'], first!.headers['webhook-id'])
  assert.equal(second!.body, first!.body)
})
