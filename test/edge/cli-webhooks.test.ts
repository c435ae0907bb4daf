import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, describe, test } from 'node:test'
import { EVENT_NAMES } from '../../edge/cli/events.ts'
import { until } from '../until.ts'
import { createKey } from './api-keys-help.ts'
import { type RunningCommand, runCli, startCli } from './cli-help.ts'
import { createEmail, getSharedEdge } from './harness.ts'

/** `webhooks listen` and `webhooks trigger`, whose deliveries the test itself sends. */

const { api, query } = await getSharedEdge()
const createEnv = async () => {
  const owner = await api.register(createEmail('hooks'))
  const { key } = await createKey(api, owner)
  return { owner, env: { MILLRACE_URL: `http://127.0.0.1:${api.port}`, MILLRACE_KEY: key } }
}
const { owner, env } = await createEnv()

/** Answers of the program to which webhooks are forwarded. */
let answer: { status: number; headers: Record<string, string> } = { status: 200, headers: {} }
const received: { headers: IncomingHttpHeaders; body: string }[] = []
const program = createServer(async (request, response) => {
  received.push({ headers: request.headers, body: await text(request) })
  response.writeHead(answer.status, answer.headers).end('answered')
})
program.listen(0, '127.0.0.1')
await once(program, 'listening')
after(() => program.close())
const forward = `http://127.0.0.1:${(program.address() as AddressInfo).port}/hooks`

async function startListening(
  ...words: string[]
): Promise<{ command: RunningCommand; endpoint: { id: number; url: string; events: string[] } }> {
  const command = startCli(['webhooks', 'listen', '--forward', forward, ...words], { env })
  const endpoint = await until('the endpoint is added', async () =>
    (await api.get('/api/v1/webhooks', { token: owner.token })).json.find(({ url }: { url: string }) =>
      url?.startsWith('http://127.0.0.1'),
    ),
  )
  return { command, endpoint }
}

async function stopListening(command: RunningCommand): Promise<void> {
  command.interrupt()
  assert.equal(await command.status, 130)
  assert.deepEqual((await api.get('/api/v1/webhooks', { token: owner.token })).json, [])
}

const deliver = (url: string, message: object, headers: Record<string, string> = {}) =>
  fetch(url, {
    method: 'POST',
    body: JSON.stringify(message),
    headers: {
      'content-type': 'application/json',
      'webhook-id': 'm1',
      'webhook-signature': 'v1,abc',
      ...headers,
    },
  })

describe('listen', () => {
  test('shows the secret, answers the challenge, forwards messages unchanged, and deletes its endpoint', async () => {
    const { command, endpoint } = await startListening()
    assert.deepEqual(endpoint.events, EVENT_NAMES.toSorted())
    await until('the secret is shown', () => /^Secret: whsec_\S+\n$/.test(command.out()))
    const challenge = await deliver(endpoint.url, { type: 'webhook.challenge', data: { challenge: 'token' } })
    assert.deepEqual([await challenge.text(), received.length], ['token', 0])
    const message = { type: 'job.done', data: { n: 'ü' } }
    const answered = await deliver(endpoint.url, message)
    assert.deepEqual([answered.status, await answered.text()], [200, 'answered'])
    const [{ headers, body }] = received.splice(0) as [(typeof received)[0]]
    assert.deepEqual(JSON.parse(body), message)
    assert.deepEqual([headers['webhook-id'], headers['webhook-signature']], ['m1', 'v1,abc'])
    assert.match(command.out(), /^\d\d:\d\d:\d\d {2}m1 {2}job\.done {2}200 in \d+ms$/m)
    await stopListening(command)
    assert.match(command.err(), /The endpoint is deleted\n$/)
  })

  test('passes refusals and pauses of the program back to the service', async () => {
    const { command, endpoint } = await startListening('--events', 'job.failed,job.done', '--json')
    assert.deepEqual(endpoint.events, ['job.done', 'job.failed'])
    answer = { status: 503, headers: { 'retry-after': '7' } }
    const refused = await deliver(endpoint.url, { type: 'webhook.test', data: { type: 'job.done' } })
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '7'])
    answer = { status: 200, headers: {} }
    const wrong = await fetch(new URL('/other', endpoint.url), { method: 'POST', body: '{}' })
    assert.equal(wrong.status, 404)
    await until('the message is shown', () => command.out().includes('"status":503'))
    const [added] = command.out().split('\n')
    assert.match(JSON.parse(added!).secret, /^whsec_/)
    await stopListening(command)
  })

  test('answers 502 if the program does not answer', async () => {
    const command = startCli(['webhooks', 'listen', '--forward', 'http://127.0.0.1:1/x'], { env })
    const endpoint = await until('the endpoint is added', async () =>
      (await api.get('/api/v1/webhooks', { token: owner.token })).json.at(0),
    )
    const answered = await deliver(endpoint.url, { type: 'job.done', data: {} })
    assert.equal(answered.status, 502)
    assert.match(await answered.text(), /did not answer/)
    const invalid = await fetch(endpoint.url, { method: 'POST', body: 'no json' })
    assert.equal(invalid.status, 400)
    await api.call('DELETE', `/api/v1/webhooks/${endpoint.id}`, { token: owner.token })
    await stopListening(command)
    assert.match(command.err(), /The endpoint \d+ was not deleted: see http:\S+\/account\/webhooks\n$/)
  })

  test('explains an address to which the service may not deliver, and a port in use', async () => {
    const { port } = program.address() as AddressInfo
    const words = ['webhooks', 'listen', '--forward', forward]
    const refused = await runCli([...words, '--port', '0', '--address', 'http://10.1.2.3'], { env })
    assert.equal(refused.status, 3)
    assert.match(
      refused.err,
      /^The service may not deliver to http:\/\/10\.1\.2\.3\/\S+ Open a tunnel .* --address\.$/m,
    )
    const taken = await runCli([...words, '--port', String(port)], { env })
    assert.deepEqual(
      [taken.status, taken.err.split('\n')[0]],
      [2, `--port ${port} can't be used: EADDRINUSE`],
    )
  })
})

describe('trigger', () => {
  test('sends a test event to each endpoint that receives it, and shows the answers', async () => {
    const { owner, env } = await createEnv()
    const add = async (events: string[]) =>
      (
        await api.post('/api/v1/webhooks', {
          token: owner.token,
          json: { url: 'https://example.com/hooks', events },
        })
      ).json.id
    const [id, other] = [await add(['job.done']), await add(['job.failed'])]
    const settle = (status: string, last: object) =>
      until('the test event is added', async () =>
        (
          await query(
            `update webhook_delivery set status = $2, attempts = 1, due_at = null, ended_at = now(), answers = $3
             where endpoint_id = any($1) and type = 'webhook.test' and status = 'pending' returning endpoint_id, body`,
            [
              [id, other],
              status,
              JSON.stringify([{ at: new Date(), ms: 12, status: null, body: null, error: null, ...last }]),
            ],
          )
        ).at(0),
      )
    const [sent, row] = await Promise.all([
      runCli(['webhooks', 'trigger', 'job.done'], { env }),
      settle('delivered', { status: 200 }),
    ])
    assert.equal(Number(row.endpoint_id), id)
    assert.equal(JSON.parse(row.body as string).data.type, 'job.done')
    assert.deepEqual([sent.status, sent.err], [0, ''])
    assert.match(
      sent.out,
      /^job\.done {2}endpoint \d+ {2}https:\/\/example\.com\/hooks {2}delivered: 200 in 12 ms\n$/,
    )
    const [failed] = await Promise.all([
      runCli(['webhooks', 'trigger', 'job.done', '--endpoint', String(other), '--json'], { env }),
      settle('failed', { error: 'ECONNREFUSED' }),
    ])
    assert.deepEqual([failed.status, JSON.parse(failed.out).status], [1, 'failed'])
  })

  test('needs an active endpoint that receives the event', async () => {
    const { env } = await createEnv()
    const none = await runCli(['webhooks', 'trigger', 'send.changed'], { env })
    assert.equal(none.status, 2)
    assert.match(
      none.err,
      /^No active endpoint of the account receives send\.changed\. Run: npx millrace webhooks listen/,
    )
    const unknown = await runCli(['webhooks', 'trigger', 'job.done', '--endpoint', '999999999'], { env })
    assert.deepEqual([unknown.status, unknown.err], [3, 'Webhook endpoint not found (webhook.missing)\n'])
  })
})
