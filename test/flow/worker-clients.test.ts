import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobContext } from '../client/work-types.ts'
import { until } from '../until.ts'
import { startWorkerClients } from './worker-clients.ts'

/** The worker of the generated client runs the jobs of a worker queue. */

const { owner, client, create, work, addQueue, enqueue, waitFor, query, PermanentError } =
  await startWorkerClients()
const parse = async <T>(response: Promise<Response>): Promise<T> => (await (await response).json()) as T

test('runs jobs of tasks that it declares, and returns their results', async () => {
  const queue = await addQueue({ open: false })
  let [running, most] = [0, 0]
  const run = async ({ a, b }: { a: number; b: number }) => {
    most = Math.max(most, ++running)
    await new Promise((resolve) => setImmediate(resolve))
    running--
    return { sum: a + b }
  }
  const args = { type: 'object', required: ['a', 'b'] }
  const worker = work(queue, { add: { run, args, max_tries: 2 } }, { concurrency: 3 })
  const declared = await until('the task is declared', async () => {
    const { tasks } = await parse<{ tasks: object[] }>(owner.fetch(`/api/v1/worker-queues/${queue}`))
    return tasks[0] as { name: string; args: object; max_tries: number } | undefined
  })
  assert.deepEqual([declared.name, declared.args, declared.max_tries], ['add', args, 2])
  const bad = { queue_type: queue, task_name: 'add', args: { a: 1 } }
  assert.equal((await owner.post('/api/v1/tasks/enqueue', bad)).status, 422)
  const ids = await Promise.all(Array.from({ length: 20 }, (_, n) => enqueue(queue, 'add', { a: n, b: 1 })))
  const results = await Promise.all(ids.map((id) => client.jobs.result<{ sum: number }>(id)))
  assert.deepEqual(
    results.map(({ sum }) => sum),
    ids.map((_, n) => n + 1),
  )
  assert.ok(most <= 3, `${most} jobs at a time`)
  await worker.stop()
  assert.deepEqual(await query('select from worker_lease where queue = $1', [queue]), [])
})

test('gives a task its context, and sends progress, events and log lines', async () => {
  const queue = await addQueue()
  const first = await enqueue(queue, 'first')
  const second = { queue_type: queue, task_name: 'second', args: { n: 1 } }
  const { task_id: id } = await parse<{ task_id: string }>(
    owner.post(`/api/v1/tasks/enqueue?after=${first}`, second),
  )
  const stream = await owner.stream(`/api/v1/jobs/${id}/events`)
  await stream.until('the stream shows the initial state', (frames) => frames.length === 1)
  let seen: JobContext | undefined
  work(queue, {
    first: () => 'one',
    second: (_, context) => {
      seen = context
      const { progress, emit, log } = context
      progress('Half', 1, 2)
      emit('tile', { x: 1 })
      log('Looks odd', { colour: 'red' }, 'warn')
    },
  })
  const frames = await stream.waitForEnd()
  assert.ok(frames.some(({ event, data }) => event === 'status' && data.label === 'Half'))
  assert.deepEqual(
    frames.filter(({ event }) => event === 'tile').map(({ data }) => data),
    [{ x: 1 }],
  )
  assert.deepEqual([frames.at(-1)!.data.status, frames.at(-1)!.data.result], ['done', null])
  const lines = await query('select level, message, data from job_log where job_id = $1', [id])
  assert.deepEqual(lines, [{ level: 'warn', message: 'Looks odd', data: { colour: 'red' } }])
  const { jobId, attempt, tries, deadline, dependencies, signal } = seen!
  assert.deepEqual([jobId, attempt, tries, signal.aborted], [id, 1, 1, false])
  assert.ok(deadline! > new Date())
  assert.deepEqual([dependencies[0]!.job_id, dependencies[0]!.result], [first, 'one'])
})

test('aborts a cancelled job, which ends when its task has', async () => {
  const queue = await addQueue()
  const id = await enqueue(queue, 'wait')
  const { promise: canEnd, resolve: end } = Promise.withResolvers<void>()
  let reason: unknown = null
  work(queue, {
    wait: async (_, { signal, progress }) => {
      progress('Waiting')
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      reason = signal.reason
      await canEnd
      signal.throwIfAborted()
    },
  })
  await waitFor(id, 'running')
  assert.equal((await owner.fetch(`/api/v1/jobs/${id}`, { method: 'DELETE' })).status, 202)
  await until('the task is aborted', () => reason !== null)
  assert.equal((reason as Error & { reason: string }).reason, 'cancelled')
  assert.equal((await waitFor(id, 'running')).attempt, 1)
  end()
  await waitFor(id, 'cancelled')
})

test('retries a failed job, unless the failure is permanent or no try is left', async () => {
  const queue = await addQueue()
  const error = (message: string, fields: object = {}) => Object.assign(new Error(message), fields)
  work(queue, {
    once: (_, { attempt }) => {
      if (attempt === 1) throw error('Not yet', { retryAfterSeconds: 0 })
      return attempt
    },
    never: () => {
      throw new PermanentError('No such image', { code: 'image.missing' })
    },
    thrice: {
      run: () => {
        throw 'a string'
      },
      max_tries: 2,
    },
  })
  const [once, never] = [await enqueue(queue, 'once'), await enqueue(queue, 'never')]
  const done = await waitFor(once, 'done')
  assert.deepEqual([done.attempt, done.tries, done.result], [2, 2, 2])
  const failed = await waitFor(never, 'failed')
  assert.deepEqual([failed.attempt, failed.code, failed.detail], [1, 'image.missing', 'No such image'])
  const exhausted = await waitFor(await enqueue(queue, 'thrice'), 'failed')
  assert.deepEqual([exhausted.attempt, exhausted.detail], [2, 'a string'])
})

test('fails a job whose result or error the service rejects', async () => {
  const queue = await addQueue()
  const errors: string[] = []
  const tasks = {
    wrong: { run: () => ({ width: 'wide' }), result: { properties: { width: { type: 'number' } } } },
    huge: () => 'x'.repeat(2 ** 20),
    cyclic: () => {
      const result: Record<string, unknown> = {}
      result.self = result
      return result
    },
    coded: () => {
      throw new PermanentError('Bad', { code: 'No Code' })
    },
    mixed: (_: object, { emit, progress }: JobContext) => {
      emit('Not A Kind', 1)
      progress('Fine')
      return 1
    },
  }
  work(queue, tasks, { onError: ({ message }) => errors.push(message) })
  const ids = await Promise.all(Object.keys(tasks).map((name) => enqueue(queue, name)))
  const [wrong, huge, cyclic, coded] = await Promise.all(ids.slice(0, 4).map((id) => waitFor(id, 'failed')))
  assert.match(wrong!.detail!, /^The result width must be number/)
  assert.match(huge!.detail!, /1 MiB/)
  assert.match(cyclic!.detail!, /^The result is not JSON/)
  assert.match(coded!.detail!, /rejects the report/)
  for (const job of [wrong, huge, cyclic, coded]) assert.equal(job!.attempt, 1)
  assert.equal((await waitFor(ids[4]!, 'done')).result, 1)
  assert.ok(errors.some((message) => message.startsWith('mixed: ') && message.includes('kind')))
})

test('lets running jobs end when it stops, and starts no others', async () => {
  const queue = await addQueue()
  const { promise: canEnd, resolve: end } = Promise.withResolvers<string>()
  const id = await enqueue(queue, 'wait')
  const worker = work(queue, { wait: () => canEnd }, { concurrency: 1 })
  await waitFor(id, 'running')
  const later = await enqueue(queue, 'wait')
  const stopped = worker.stop()
  end('ended')
  await stopped
  assert.equal((await waitFor(id, 'done')).result, 'ended')
  assert.equal((await waitFor(later, 'available')).attempt, 0)
})

test('ends with the refusal of the service', async () => {
  const refused = { name: 'RequestError', message: /API key|access token/ }
  await assert.rejects(work('nothing', { a: () => {} }, {}, create({ key: 'no.such.token' })).done, refused)
  await assert.rejects(work('no-such-queue', { a: () => {} }).done, /Worker queue not found/)
})
