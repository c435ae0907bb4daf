import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { TestDatabase } from '../database.ts'
import { until } from '../until.ts'
import type { Answered, startEdgeAndDatabase } from './harness.ts'

/** Calls of HTTP workers and of those who add jobs for them. */

type Api = Awaited<ReturnType<typeof startEdgeAndDatabase>>['api']
/** Anyone with a token. */
export type Caller = { readonly token: string }

export interface ClaimedJob {
  readonly job_id: string
  readonly task: string
  readonly args: Readonly<Record<string, unknown>>
  readonly attempt: number
  readonly tries: number
  readonly max_tries: number
  readonly deadline: string
  readonly dependencies: readonly { readonly status: string; readonly result: unknown }[]
  readonly traceparent: string | null
  readonly alone: boolean
}

let queues = 0

export const idsOf = (jobs: readonly { readonly job_id: string }[]): string[] =>
  jobs.map(({ job_id }) => job_id)

/** Waits until a claim of the worker `waiting` waits for jobs. Its first attempt stores the lease with that name. */
export const waitForClaim = (query: TestDatabase['query'], lease: string): Promise<true> =>
  until('the claim waits', async () => {
    const rows = await query(`select from worker_lease where id = $1 and name = 'waiting'`, [lease])
    return rows.length > 0
  })

export function createWorkerHelp(api: Api) {
  const send = (
    who: Caller,
    method: 'POST' | 'GET' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    json?: unknown,
  ): Promise<Answered> =>
    api.call(method, path, { token: who.token, ...(json === undefined ? {} : { json: json as object }) })

  const addQueue = async (who: Caller, more: object = {}): Promise<string> => {
    const name = `queue-${++queues}`
    const answer = await send(who, 'POST', '/api/v1/worker-queues', { name, open: true, ...more })
    assert.equal(answer.status, 201, answer.text)
    return name
  }

  const add = async (who: Caller, queue: string, args: object = {}, more: object = {}): Promise<string> => {
    const body = { queue_type: queue, task_name: 'work', args, ...more }
    const answer = await send(who, 'POST', '/api/v1/tasks/enqueue', body)
    assert.equal(answer.status, 202, answer.text)
    return answer.json.task_id
  }

  const claim = (who: Caller, queue: string, more: object = {}): Promise<Answered> =>
    send(who, 'POST', `/api/v1/worker-queues/${queue}/claims`, { worker: 'test', ...more })

  const take = async (who: Caller, queue: string, more: object = {}) => {
    const lease_id = randomUUID()
    const answer = await claim(who, queue, { lease_id, max: 100, ...more })
    assert.equal(answer.status, 200, answer.text)
    return { lease: answer.json.lease_id as string, jobs: answer.json.jobs as ClaimedJob[] }
  }

  const renew = (who: Caller, lease: string, json: object = {}): Promise<Answered> =>
    send(who, 'POST', `/api/v1/workers/leases/${lease}`, json)

  const report = (who: Caller, lease: string, items: readonly object[]): Promise<Answered> =>
    send(who, 'POST', `/api/v1/workers/leases/${lease}/reports`, { items })

  /** Reports, and returns the statuses. */
  const reported = async (
    who: Caller,
    lease: string,
    items: readonly object[],
  ): Promise<readonly string[]> => {
    const answer = await report(who, lease, items)
    assert.equal(answer.status, 200, answer.text)
    return answer.json.items.map((item: { status: string }) => item.status)
  }

  const readJob = async (who: Caller, id: string) => (await send(who, 'GET', `/api/v1/jobs/${id}`)).json

  return { send, addQueue, add, claim, take, renew, report, reported, readJob }
}
