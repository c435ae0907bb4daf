import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'

// Ports below the ephemeral range. Within that range, connections and servers take ports at random.
const [FIRST, END] = [20_000, 30_000]

/** Makes a server listen on 127.0.0.1. @throws if it can't. */
export async function listenOn(server: net.Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
}

/** Makes a server listen at a random port outside the ephemeral range, and returns the port. */
export async function listenOnFreePort(server: net.Server): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END)
    try {
      await listenOn(server, port)
      return port
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    }
  }
}

/** Returns a port without a listener. A process can listen there, and listen again after a restart. */
export async function findFreePort(): Promise<number> {
  const probe = net.createServer()
  const port = await listenOnFreePort(probe)
  await new Promise((resolve) => probe.close(resolve))
  return port
}
