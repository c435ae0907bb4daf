import { startEdge } from '../edge/harness.ts'
import { Client } from '../service.ts'

/** A client that has signed in at an edge in this process (a process of its own takes 0.4 s of CPU): where no edge dies. */
export async function startReader(url: string, env: Readonly<Record<string, string>> = {}): Promise<Client> {
  const client = await clientOf(url, env)
  await client.register('reader@example.com')
  return client
}

/** A client of one more such edge. */
export async function clientOf(url: string, env: Readonly<Record<string, string>> = {}): Promise<Client> {
  const { port } = await startEdge(url, { env })
  return new Client(port)
}
