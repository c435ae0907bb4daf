import { randomUUID } from 'node:crypto'
import { createJsonClient, type JsonClient } from './json-client.ts'

/**
 * An HTTP worker of a worker queue in a separate process. It answers each job with its `echo`, as the task
 * `system.noop` does, and reports many results at a time.
 */

export interface HttpWorkerOrder {
  readonly port: number
  readonly token: string
  readonly queue: string
  /** Most jobs of a claim. */
  readonly max: number
  /** Numbers of claims and of reports that are open at a time. */
  readonly claims: number
  readonly reports: number
}

interface ClaimAnswer {
  readonly jobs: readonly {
    readonly job_id: string
    readonly attempt: number
    readonly args: { readonly echo: string }
  }[]
}

interface ReportAnswer {
  readonly items: readonly { readonly status: string }[]
}

const WAIT_SECONDS = 5
const MAX_ITEMS = 1000

const leaseId = randomUUID()
const ended: object[] = []
let wake = Promise.withResolvers<void>()
let sending = 0

process.on('message', (order: HttpWorkerOrder) => {
  const client = createJsonClient(order.port, order.token)
  for (let i = 0; i < order.claims; i++) keep(() => claim(client, order))
  for (let i = 0; i < order.reports; i++) keep(() => report(client))
  process.send!({})
})
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => process.exit())
process.send!({})

/** Repeats an action until the process ends. Ends the process if the action fails. */
function keep(act: () => Promise<void>): void {
  const repeat = async (): Promise<void> => {
    for (;;) await act()
  }
  repeat().catch((error: Error) => {
    process.stderr.write(`${error.stack}\n`)
    process.exit(1)
  })
}

async function claim(client: JsonClient, { queue, max }: HttpWorkerOrder): Promise<void> {
  const { jobs } = await client.call<ClaimAnswer>('POST', `/api/v1/worker-queues/${queue}/claims`, {
    worker: 'bench',
    lease_id: leaseId,
    max,
    wait_seconds: WAIT_SECONDS,
  })
  for (const { job_id, attempt, args } of jobs)
    ended.push({ job_id, attempt, done: { result: { echo: args.echo } } })
  wake.resolve()
}

/** Reports what has ended. A report that finds another one under way lets more ends collect meanwhile. */
async function report(client: JsonClient): Promise<void> {
  if (ended.length === 0 || (sending > 0 && ended.length < MAX_ITEMS / 2)) {
    wake = Promise.withResolvers()
    await wake.promise
    return
  }
  sending++
  const items = ended.splice(0, MAX_ITEMS)
  const path = `/api/v1/workers/leases/${leaseId}/reports`
  const answer = await client.call<ReportAnswer>('POST', path, { items })
  const wrong = answer.items.find(({ status }) => status !== 'ok')
  if (answer.items.length !== items.length || wrong !== undefined)
    throw new Error(`A report was answered ${JSON.stringify(wrong ?? answer).slice(0, 600)}`)
  sending--
  wake.resolve()
}
