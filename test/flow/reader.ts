import { startEdge } from '../edge/harness.ts'
import { Client } from '../service.ts'

/** Signs a client in at an edge in this process, for tests that kill no edge: a new process takes 0.4 s of CPU. */
export async function startReader(url: string, env: Readonly<Record<string, string>> = {}): Promise<Client> {
  const client = await createClient(url, env)
  await client.register('reader@example.com')
  return client
}

/** Returns a client of another such edge. */
export async function createClient(url: string, env: Readonly<Record<string, string>> = {}): Promise<Client> {
  const { port } = await startEdge(url, { env })
  return new Client(port)
}
