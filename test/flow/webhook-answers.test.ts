import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { Client, startProcess } from '../service.ts'
import { type Receiver, startReceiver, verifyWebhook } from '../standins/receiver.ts'
import { until } from '../until.ts'

/** A receiver's head decides, `Retry-After` is obeyed, and tests and endpoints of the service work end to end. */

const { url, query } = await createTestDatabase()
const env = { WEBHOOK_RETRY_SECONDS: '0.1,0.1,0.1,0.1,30', WORKER_THREADS: '1' }
const edge = await startEdge(url, { env })
await startProcess('worker', url, { ...env, WORKER_QUEUES: 'webhooks' })
let count = 0

async function register(role = 'user'): Promise<Client> {
  const client = new Client(edge.port)
  await client.register(`w${++count}@example.com`)
  if (role === 'admin')
    await query(`update account set role = 'admin' where id = (select max(id) from account)`)
  return client
}
async function openReceiver(answer?: Receiver['answer']): Promise<Receiver> {
  const receiver = await startReceiver()
  after(() => receiver.stop())
  if (answer !== undefined) receiver.answer = answer
  return receiver
}
const parseJson = async <T>(response: Response | Promise<Response>): Promise<T> =>
  (await (await response).json()) as T
interface Endpoint {
  readonly id: number
  readonly secret: string
}
const add = (client: Client, json: object) =>
  parseJson<Endpoint>(client.post('/api/v1/webhooks', { events: ['job.cancelled'], ...json }))
interface Listed {
  readonly id: number
  readonly status: string
  readonly attempts: number
  readonly due_at: string | null
  readonly last_answer: { readonly status: number; readonly retry_after?: number } | null
}
async function sendTest(client: Client, id: number, json: object = {}) {
  const sent = await parseJson<Listed>(client.post(`/api/v1/webhooks/${id}/test`, json))
  return () => parseJson<Listed>(client.fetch(`/api/v1/webhooks/${id}/deliveries/${sent.id}`))
}

const openBody =
  (status: number, headers: Record<string, string> = {}): Receiver['answer'] =>
  (response) => {
    response
      .on('error', () => {})
      .writeHead(status, headers)
      .flushHeaders()
    response.write('begun')
  }

test('a receiver that answers 200 and keeps its body open has taken the message', async () => {
  const receiver = await openReceiver(openBody(200))
  const client = await register()
  const { id, secret } = await add(client, { url: receiver.url })
  const read = await sendTest(client, id, { type: 'job.done' })
  await until('the message is delivered', async () => (await read()).status === 'delivered')
  assert.equal((await read()).attempts, 1)
  verifyWebhook(secret, receiver.received[0]!)
  assert.equal((receiver.received[0]!.message.data as { type: string }).type, 'job.done')
})

test('Retry-After of an open answer delays the message and pauses the endpoint', async () => {
  const receiver = await openReceiver(openBody(503, { 'retry-after': '3600' }))
  const client = await register()
  const { id } = await add(client, { url: receiver.url })
  const read = await sendTest(client, id)
  await until('the answer is stored', async () => (await read()).attempts === 1)
  const { status, due_at, last_answer } = await read()
  assert.deepEqual([status, last_answer!.status, last_answer!.retry_after], ['pending', 503, 3600])
  assert.ok(Date.parse(due_at!) - Date.now() > 3_500_000)
  const endpoint = await parseJson<{ paused_until: string }>(client.fetch(`/api/v1/webhooks/${id}`))
  assert.ok(Date.parse(endpoint.paused_until) - Date.now() > 3_500_000)
})

test('410 with an open body disables the endpoint', async () => {
  const receiver = await openReceiver(openBody(410))
  const client = await register()
  const { id } = await add(client, { url: receiver.url })
  await sendTest(client, id)
  await until('the endpoint is disabled', async () => {
    const { is_active } = await parseJson<{ is_active: boolean }>(client.fetch(`/api/v1/webhooks/${id}`))
    return !is_active
  })
})

test('an endpoint of the service receives the events of all accounts', async () => {
  const receiver = await openReceiver()
  const [admin, user] = [await register('admin'), await register()]
  const { id, secret } = await add(admin, { url: receiver.url, scope: 'service' })
  await until('the endpoint is proved', async () => {
    const { proved_at } = await parseJson<{ proved_at: string | null }>(admin.fetch(`/api/v1/webhooks/${id}`))
    return proved_at !== null
  })
  const accounts: number[] = []
  for (const client of [admin, user]) {
    const me = await parseJson<{ id: number }>(client.fetch('/api/v1/auth/me'))
    accounts.push(me.id)
    const [job] = await query(
      `insert into job (id, name, queue, owner_id, mailbox, payload, status, max_tries, run_at)
       values (gen_random_uuid(), 'n', 'q', $1::int, 'm' || $1::int, '{}', 'scheduled', 1, now() + interval '1 hour') returning id`,
      [me.id],
    )
    await client.fetch(`/api/v1/jobs/${job!.id}`, { method: 'DELETE' })
  }
  await until('both events have arrived', () => receiver.received.length === 2)
  for (const one of receiver.received) verifyWebhook(secret, one)
  assert.deepEqual(
    receiver.received
      .map(({ message }) => (message as unknown as { account_id: number }).account_id)
      .sort((a, b) => a - b),
    accounts.sort((a, b) => a - b),
  )
})
