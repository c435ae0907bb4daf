import { startEdge } from '../edge/harness.ts'
import { Client } from '../service.ts'

/**
 * Starts an edge in this process and returns a signed-in client, for tests that kill no edge. A new process would take
 * 0.4 s of CPU.
 */
export async function startReader(url: string, env: Readonly<Record<string, string>> = {}): Promise<Client> {
  const client = await createClient(url, env)
  await client.register('reader@example.com')
  return client
}

/** Starts an edge in this process and returns a client without an account. */
export async function createClient(url: string, env: Readonly<Record<string, string>> = {}): Promise<Client> {
  const { port } = await startEdge(url, { env })
  return new Client(port)
}
