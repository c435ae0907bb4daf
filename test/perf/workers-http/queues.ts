import type { Child } from '../children.ts'
import { createJsonClient, type JsonClient } from '../load/json-client.ts'
import { type SignedIn, type Stack, signUp } from '../stack.ts'

/** A service with an edge, a worker of its own and an account. */
export interface Service {
  readonly url: string
  readonly edge: Child & { readonly port: number }
  readonly account: SignedIn
  readonly client: JsonClient
  /** Adds a worker queue with the task `noop`. */
  addQueue(name: string): Promise<void>
  /** Adds a job of `noop` to a queue, and returns its id. */
  addJob(queue: string): Promise<string>
  stop(): Promise<void>
}

const QUEUE_PATH = '/api/v1/worker-queues'

/** Starts a service on a database of its own. */
export async function startService(
  stack: Stack,
  env: Readonly<Record<string, string>> = {},
): Promise<Service> {
  const url = await stack.createDatabase()
  const edge = await stack.edge(url, env)
  const worker = await stack.worker(url, { WORKER_QUEUES: 'system' })
  const account = await signUp(edge.port)
  const client = createJsonClient(edge.port, account.token)
  return {
    url,
    edge,
    account,
    client,
    addQueue: async (name) => {
      await client.call('POST', QUEUE_PATH, { name })
      await client.call('PUT', `${QUEUE_PATH}/${name}/tasks/noop`, {})
    },
    addJob: async (queue) => {
      const job = { task_name: 'noop', queue_type: queue }
      return (await client.call<{ task_id: string }>('POST', '/api/v1/tasks/enqueue', job)).task_id
    },
    stop: async () => {
      client.close()
      await Promise.all([edge.stop(), worker.stop()])
    },
  }
}
