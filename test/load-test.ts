import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { NAMED_QUEUES } from '../tasks/load-test/on-queues.ts'
import { parseSettings } from '../tasks/platform/settings/settings.ts'
import { createTally, type Tally } from './load-tally.ts'
import { FrameReader } from './perf/load/frames.ts'

/**
 * `npm run load-test -- [options]` drives the named queues through the HTTP API. Each connection adds the next task
 * after the answer to the previous one. The stream of all jobs reports their ends. The script prints a line per second
 * and a final summary.
 */

const USAGE = `Usage: npm run load-test -- [options]
  --url URL            the service; default PUBLIC_BASE_URL
  --token TOKEN        a bearer token, if the areas tasks and jobs require one; default LOAD_TEST_TOKEN
  --queue NAME         ${NAMED_QUEUES.join(' or ')}; default load_test
  --task NAME          default io_simulation_task
  --args JSON          the task's arguments; default {"operations":1,"duration_ms":50}
  --connections N      default 16
  --rate N             maximum requests a second over all connections; default no limit
  --count N            tasks per request; default 1
  --batch              adds the tasks of a request as a batch
  --seconds N          time to add tasks, in seconds; default 10
  --wait N             maximum wait for the last tasks, in seconds; default 60
`
const PROGRESS_INTERVAL_MS = 1000

interface Order {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly connections: number
  readonly rate: number
  readonly isBatch: boolean
  readonly seconds: number
  readonly wait: number
}

const order = parseOrder(process.argv.slice(2))
process.exitCode = await run(order)

async function run({ url, headers, seconds, wait, ...rest }: Order): Promise<number> {
  const tally = createTally()
  const ended = new AbortController()
  const watching = watchJobs(url, headers, tally, ended.signal)
  await watching.open
  const stop = performance.now() + seconds * 1000
  const live = setInterval(
    () => process.stdout.write(`${tally.formatProgressLine()}\n`),
    PROGRESS_INTERVAL_MS,
  )
  await Promise.all(
    Array.from({ length: rest.connections }, (_, n) =>
      runConnection({ url, headers, seconds, wait, ...rest }, n, stop, tally),
    ),
  )
  tally.endAdding()
  for (const limit = performance.now() + wait * 1000; tally.waiting > 0 && performance.now() < limit; )
    await delay(50)
  clearInterval(live)
  await recordRemaining(url, headers, tally)
  ended.abort()
  await watching.end
  process.stdout.write(`\n${tally.report()}`)
  return tally.refused === 0 && tally.waiting === 0 ? 0 : 1
}

/** Sends the requests of connection `n` at its share of the rate, until the time `stop`. */
async function runConnection(order: Order, n: number, stop: number, tally: Tally): Promise<void> {
  const pauseMs = order.rate > 0 ? (order.connections / order.rate) * 1000 : 0
  for (let due = performance.now() + (pauseMs * n) / order.connections; due < stop; due += pauseMs) {
    const early = due - performance.now()
    if (early > 0) await delay(early)
    const at = performance.now()
    if (at >= stop) return
    const ids = await enqueue(order, tally)
    tally.recordAnswer(ids, at, performance.now())
    if (pauseMs === 0) due = performance.now()
  }
}

async function enqueue({ url, headers, body, isBatch }: Order, tally: Tally): Promise<readonly string[]> {
  const path = isBatch ? 'batches' : 'tasks/enqueue'
  const response = await fetch(`${url}/api/v1/${path}`, { method: 'POST', headers, body }).catch((error) => {
    tally.recordRejection(
      `no answer: ${error instanceof Error ? ((error.cause as Error | undefined)?.message ?? error.message) : error}`,
    )
    return null
  })
  if (response === null) return []
  const answer = (await response.json()) as {
    task_id: string
    task_ids?: string[]
    job_ids?: string[]
    detail?: string
  }
  if (response.status === 202) return answer.job_ids ?? answer.task_ids ?? [answer.task_id]
  tally.recordRejection(`${response.status}: ${answer.detail}`)
  return []
}

/** Reads the stream of all jobs, and resumes after the last event if it breaks. */
function watchJobs(url: string, headers: Order['headers'], tally: Tally, signal: AbortSignal) {
  const { promise: open, resolve, reject } = Promise.withResolvers<void>()
  let lastId = ''
  const readStream = async (): Promise<void> => {
    const more = lastId === '' ? {} : { 'last-event-id': lastId }
    const response = await fetch(`${url}/api/v1/jobs/events`, { headers: { ...headers, ...more }, signal })
    if (!response.ok)
      throw new Error(`The stream of jobs answered ${response.status}: ${await response.text()}`)
    resolve()
    const frames = new FrameReader()
    for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
      for (const { id, data } of frames.feed(text)) {
        lastId = id
        const { job_id, status } = JSON.parse(data) as { job_id: string; status: string }
        tally.recordState(job_id, status, performance.now())
      }
    }
  }
  const follow = async (): Promise<void> => {
    while (!signal.aborted) {
      await readStream().catch((error) => {
        if (!signal.aborted) reject(error)
      })
      await delay(200, undefined, { signal }).catch(() => {})
    }
  }
  return { open, end: follow() }
}

/** Requests the results of tasks whose end the stream did not report, for example because the service stopped. */
async function recordRemaining(url: string, headers: Order['headers'], tally: Tally): Promise<void> {
  for (const id of tally.listWaitingIds()) {
    const response = await fetch(`${url}/api/v1/tasks/result/${id}`, { headers }).catch(() => null)
    if (response?.status !== 200) continue
    const { status } = (await response.json()) as { status: string }
    tally.recordState(id, status === 'completed' ? 'done' : status, performance.now())
  }
}

function parseOrder(argv: readonly string[]): Order {
  const text = { type: 'string' } as const
  const names = [
    'url',
    'token',
    'queue',
    'task',
    'args',
    'connections',
    'rate',
    'count',
    'seconds',
    'wait',
  ] as const
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        ...Object.fromEntries(names.map((name) => [name, text])),
        batch: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    }) as { values: Partial<Record<(typeof names)[number], string>> & { batch?: boolean; help?: boolean } }
    if (values.help === true) exitWith(USAGE, 0)
    const number = (name: (typeof names)[number], fallback: number): number => {
      const value = Number(values[name] ?? fallback)
      if (!(value > 0 || (name === 'rate' && value === 0)))
        throw new Error(`--${name} must be a positive number`)
      return value
    }
    const token = values.token ?? process.env.LOAD_TEST_TOKEN
    const count = number('count', 1)
    const isBatch = values.batch === true
    const job = {
      task_name: values.task ?? 'io_simulation_task',
      queue_type: values.queue ?? 'load_test',
      args: JSON.parse(
        values.args ?? (values.task === undefined ? '{"operations":1,"duration_ms":50}' : '{}'),
      ) as object,
    }
    return {
      url: (values.url ?? parseSettings(process.env).publicBaseUrl).replace(/\/+$/, ''),
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(isBatch ? { jobs: Array<object>(count).fill(job) } : { ...job, count }),
      connections: number('connections', 16),
      rate: number('rate', 0),
      isBatch,
      seconds: number('seconds', 10),
      wait: number('wait', 60),
    }
  } catch (error) {
    return exitWith(`${error instanceof Error ? error.message : error}\n${USAGE}`, 2)
  }
}

function exitWith(text: string, code: number): never {
  process.stderr.write(text)
  process.exit(code)
}
