import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'

// Below those that systems hand out by themselves: of these, any connection or server may take one before it is used here.
const [FIRST, END] = [20_000, 30_000]

/** Has a server listen on this machine. @throws when it can't. */
export async function listenAt(server: net.Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
}

/** Has a server listen at a port that nobody else is given, not even while it is closed for a while; answers which. */
export async function listenAnywhere(server: net.Server): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END)
    try {
      await listenAt(server, port)
      return port
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    }
  }
}

/** A port that nobody listens on now: a process can be started at it, and again after its end. */
export async function freePort(): Promise<number> {
  const probe = net.createServer()
  const port = await listenAnywhere(probe)
  await new Promise((resolve) => probe.close(resolve))
  return port
}
