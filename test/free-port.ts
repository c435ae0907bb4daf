import { randomInt } from 'node:crypto'
import net from 'node:net'

// Below those that systems hand out by themselves: of these, any connection or server may take one before it is used here.
const [FIRST, END] = [20_000, 30_000]

/** A port that nobody listens on now: a process can be started at it, and again after its end. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END)
    const probe = net.createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    await new Promise((resolve) => probe.close(resolve))
    return port
  }
}
