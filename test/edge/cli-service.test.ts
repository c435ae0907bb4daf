import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { until } from '../until.ts'
import { runCli, startCli } from './cli-help.ts'

/** Commands against a service whose answers the test scripts, such as failures and cut connections. */

type Handler = (request: IncomingMessage, response: ServerResponse) => void

const ID = '01a20118-fbcc-738c-80ed-00058e0e401d'
const OTHER_ID = '01a20118-fbcc-738c-80ed-00058e0e401e'
const NOW = Date.parse('2026-03-01T09:30:00Z')

/** Starts a service with a handler for each method and path. Returns the requests so far. */
async function startService(t: TestContext, handlers: Readonly<Record<string, Handler>>) {
  const requests: string[] = []
  const server = createServer((request, response) => {
    const name = `${request.method} ${request.url!.replace(/^\/api\/v1|\?.*/g, '')}`
    requests.push(name)
    const handler = handlers[name] ?? answer({ detail: 'No such path', code: 'route.missing' }, 404)
    handler(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { requests, env: { MILLRACE_URL: url } }
}

const answer =
  (body: unknown, status = 200, headers = {}): Handler =>
  (_, response) =>
    response.writeHead(status, headers).end(JSON.stringify(body))

/** Answers each request with the next handler, and further ones with the last. */
const inTurn = (...handlers: readonly Handler[]): Handler => {
  let next = 0
  return (request, response) => handlers[Math.min(next++, handlers.length - 1)]!(request, response)
}

const repeat = (count: number, handler: Handler): readonly Handler[] => Array<Handler>(count).fill(handler)

const stayDown = answer({ detail: 'Down', code: 'database.down' }, 503, { 'retry-after': '0' })
const refuse = answer({ detail: 'No scope', code: 'auth.scope' }, 403)
const cut: Handler = (_, response) => {
  response.writeHead(200, { 'content-length': '100' })
  response.write('{"jobs":', () => response.destroy())
}

interface State {
  readonly job_id?: string
  readonly status: string
  readonly label?: string
  readonly [field: string]: unknown
}

const formatFrame = (event: string, state: State): string =>
  `event: ${event}\nid: 7\ndata: ${JSON.stringify({ job_id: ID, label: '', ...state })}\n\n`

/** Sends frames of a stream, whose subscribers reconnect after a millisecond. */
const send =
  (...frames: readonly string[]) =>
  (_: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`retry: 1\n\n${frames.join('')}`)
  }

const sendAndEnd =
  (...frames: readonly string[]): Handler =>
  (request, response) => {
    send(...frames)(request, response)
    response.end()
  }

describe('an answer', () => {
  test('that is cut is no refusal, and one that is no JSON is', async (t) => {
    const { env } = await startService(t, {
      'GET /jobs/search': cut,
      [`DELETE /jobs/${ID}`]: (_, response) => response.end('<html>'),
    })
    const lost = await runCli(['jobs'], { env })
    assert.deepEqual([lost.status, lost.out], [4, ''])
    assert.match(lost.err, /^http:\S+ can't be reached: UND_ERR_SOCKET$/m)
    const other = await runCli(['cancel', ID], { env })
    assert.equal(other.status, 3)
    assert.match(other.err, /answered 200 without an error of Millrace$/m)
  })

  test('that Ctrl-C interrupts is no refusal', async (t) => {
    const { env } = await startService(t, {
      'GET /jobs/search': (_, response) => void response.write('{"jobs":'),
    })
    const { fetch } = globalThis
    let isAnswered = false
    t.mock.method(globalThis, 'fetch', async (request: Request) => {
      const response = await fetch(request)
      isAnswered = true
      return response
    })
    const command = startCli(['jobs'], { env })
    await until('the answer has begun', () => isAnswered)
    command.interrupt()
    assert.deepEqual([await command.status, command.err()], [130, ''])
  })

  test('503 has the same exit status for one job as for several', async (t) => {
    const handlers = { [`DELETE /jobs/${ID}`]: stayDown, [`DELETE /jobs/${OTHER_ID}`]: stayDown }
    const { env } = await startService(t, handlers)
    assert.equal((await runCli(['cancel', ID], { env })).status, 4)
    const both = await runCli(['cancel', ID, OTHER_ID], { env })
    assert.deepEqual([both.status, both.err], [4, `${ID}: Down\n${OTHER_ID}: Down\n`])
  })
})

describe('the id of an added job', () => {
  const added = { task_id: ID, batch_id: ID, job_ids: [], job_id: ID, name: 'noop', status: 'queued' }
  const add = answer(added, 202)
  const commands: readonly (readonly [words: readonly string[], message: RegExp])[] = [
    [['enqueue', 'noop', '--wait'], new RegExp(`^The job goes on: npx millrace logs ${ID} --follow$`, 'm')],
    [['retry', OTHER_ID, OTHER_ID, '--wait'], new RegExp(`^The job goes on: npx millrace logs ${ID}`, 'm')],
    [['batch', '-', '--wait'], new RegExp(`^The batch ${ID} goes on$`, 'm')],
  ]
  for (const [words, message] of commands)
    test(`is shown if ${words[0]} --wait fails`, async (t) => {
      for (const [follow, status] of [
        [refuse, 3],
        [stayDown, 4],
      ] as const) {
        const { env } = await startService(t, {
          'POST /tasks/enqueue': add,
          'POST /batches': add,
          [`POST /jobs/${OTHER_ID}/retry`]: add,
          [`GET /jobs/${ID}/events`]: follow,
          [`GET /batches/${ID}/events`]: follow,
        })
        const failed = await runCli(words, { env, stdin: '[]' })
        assert.match(failed.err, message)
        assert.deepEqual([failed.status, failed.out], [status, ''])
      }
    })
})

test('batch --wait shows each end once after a reconnect', async (t) => {
  const failed = (job_id: string) =>
    formatFrame('status', { job_id, status: 'failed', error: { code: 'x', detail: 'Bad' } })
  const members = [ID, OTHER_ID] as const
  const batch = '01a20118-fbcc-738c-80ed-00058e0e4000'
  const result = { total: 2, done: 0, failed: 2, cancelled: 0 }
  const { env } = await startService(t, {
    'POST /batches': answer({ batch_id: batch, job_ids: members }, 202),
    [`GET /batches/${batch}/events`]: inTurn(
      sendAndEnd(failed(ID)),
      send(failed(ID), failed(OTHER_ID), formatFrame('status', { job_id: batch, status: 'done', result })),
    ),
  })
  const { status, out, err } = await runCli(['batch', '-', '--wait'], { env, stdin: '[]' })
  assert.deepEqual([status, JSON.parse(out)], [1, result])
  assert.equal(err, members.map((id) => `${id}  failed  Bad (x)\n`).join(''))
})

describe('jobs --follow', () => {
  const listed = { job_id: ID, name: 'noop', status: 'running', label: 'Page 1', error: null }
  const times = { created_at: '2026-03-01T09:29:00Z', started_at: '2026-03-01T09:29:01Z', finished_at: null }

  test('shows a listed job again only once its progress changes', async (t) => {
    const running = (current: number) =>
      formatFrame('status', { status: 'running', label: 'Page 1', progress: { current, total: 3 } })
    let resumed: string | undefined
    const { env } = await startService(t, {
      'GET /jobs/search': answer({ jobs: [{ ...listed, ...times }], next: null }, 200, {
        date: new Date(NOW).toUTCString(),
      }),
      'GET /jobs/events': (request, response) => {
        resumed = request.headers['last-event-id'] as string
        send(running(1), running(1), running(2))(request, response)
      },
    })
    const command = startCli(['jobs', '--follow'], { env, now: () => 0 })
    await until('the change is shown', () => command.out().includes('2/3'))
    command.interrupt()
    assert.equal(await command.status, 130)
    const details = command
      .out()
      .trim()
      .split('\n')
      .map((line) => line.split(/ {2,}/).slice(3).join(' '))
    assert.deepEqual(details, ['running Page 1', 'running 2/3 Page 1'])
    // The clock of this machine may be wrong.
    assert.equal(Number(resumed), NOW - 5000)
  })

  test('looks up only jobs that match, also while the service restarts', async (t) => {
    const [queued, failed] = [ID, OTHER_ID]
    const { env, requests } = await startService(t, {
      'GET /jobs/search': answer({ jobs: [], next: null }),
      'GET /jobs/events': send(
        formatFrame('status', { job_id: queued, status: 'queued' }),
        formatFrame('status', { job_id: queued, status: 'running' }),
        formatFrame('status', { job_id: failed, status: 'failed' }),
      ),
      [`GET /jobs/${failed}`]: inTurn(...repeat(5, stayDown), answer({ name: 'noop' })),
    })
    const command = startCli(['jobs', '--follow', '--status', 'failed'], { env })
    await until('the failed job is shown', () => command.out().includes(`${failed}  noop  failed`))
    command.interrupt()
    await command.status
    assert.deepEqual(requests.slice(2), Array(6).fill(`GET /jobs/${failed}`))
  })

  test('shows a job that is queued again', async (t) => {
    const states = ['running', 'queued'].map((status) => formatFrame('status', { status }))
    const { env } = await startService(t, {
      'GET /jobs/search': answer({
        jobs: [{ ...listed, ...times, job_id: OTHER_ID, status: 'queued' }],
        next: null,
      }),
      'GET /jobs/events': send(...states),
      [`GET /jobs/${ID}`]: answer({ name: 'noop' }),
    })
    const command = startCli(['jobs', '--follow', '--status', 'queued'], { env })
    await until('the job is shown', () => command.out().includes(`${ID}  noop  queued`))
    command.interrupt()
    await command.status
    assert.doesNotMatch(command.out(), /running/)
  })
})

describe('logs', () => {
  const job = { name: 'noop', status: 'running', started_at: null, finished_at: null, error: null }
  const details = (log: readonly object[] | null, status = 'running') =>
    answer({ job: { ...job, status }, tries: 1, max_tries: 5, log })
  const line = (second: number, message: string) => ({
    at: `2026-03-01T09:30:0${second}.000Z`,
    attempt: 1,
    level: 'info',
    message,
    data: {},
  })
  const history = (from: number, to: number) =>
    answer(
      Array.from({ length: to - from + 1 }, (_, n) => ({
        seq: from + n,
        kind: 'page',
        at: '2026-03-01T09:29:00.000Z',
        data: from + n,
      })),
    )

  test('says that it omits events and log lines', async (t) => {
    const { env } = await startService(t, {
      [`GET /jobs/${ID}/details`]: details(Array(200).fill(line(1, 'a'))),
      [`GET /jobs/${ID}/history`]: history(501, 1500),
    })
    const { status, out, err } = await runCli(['logs', ID], { env })
    assert.deepEqual([status, out.trim().split('\n').length], [0, 1201])
    assert.equal(
      err,
      '500 events are missing: the service returns the last 1000\n' +
        'A job has at most 200 log lines. Later ones are not stored.\n',
    )
  })

  test('with --follow shows each line once, although late ones come first by time', async (t) => {
    const [a, b, c] = [line(1, 'a'), line(2, 'b'), line(3, 'c')]
    const { env } = await startService(t, {
      [`GET /jobs/${ID}/details`]: inTurn(details([b]), details([a, b, b, c], 'done')),
      [`GET /jobs/${ID}/history`]: inTurn(history(1, 3), history(1004, 2003)),
    })
    let now = 0
    // Each look at the clock is later, so that the command does not wait for late log lines.
    const { status, out, err } = await runCli(['logs', ID, '--follow'], { env, now: () => (now += 3000) })
    assert.equal(status, 0)
    const texts = [...out.matchAll(/info {7}(\w)$/gm)].map(([, text]) => text)
    assert.deepEqual(texts, ['b', 'a', 'b', 'c'])
    assert.equal(err, '1000 events are missing: the service returns the last 1000\n')
  })

  test('with --follow goes on after a restart of the service', async (t) => {
    const { env } = await startService(t, {
      [`GET /jobs/${ID}/details`]: inTurn(details([]), ...repeat(5, stayDown), details([], 'done')),
      [`GET /jobs/${ID}/history`]: history(1, 1),
    })
    let now = 0
    const { status } = await runCli(['logs', ID, '--follow'], { env, now: () => (now += 3000) })
    assert.equal(status, 0)
  })
})

test('listen ends with 4 if the service does not answer, and names the page of its endpoint', async (t) => {
  const { timeout } = AbortSignal
  t.mock.method(AbortSignal, 'timeout', () => timeout.call(AbortSignal, 50))
  for (const handler of [() => {}, answer({ detail: 'Down', code: 'down' }, 503, { 'retry-after': '60' })]) {
    const { env } = await startService(t, { 'POST /webhooks': handler })
    const { status, out, err } = await runCli(['webhooks', 'listen', '--forward', 'http://127.0.0.1:1'], {
      env,
    })
    assert.match(err, /^If the service .*, its endpoint remains: see http:\S+\/account\/webhooks$/m)
    assert.match(err, /can't be reached: ETIMEDOUT$/m)
    assert.deepEqual([status, out], [4, ''])
  }
})
