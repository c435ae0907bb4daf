import { connect, createServer, type Socket } from 'node:net'
import { listenOn, listenOnFreePort } from '../free-port.ts'

/** TCP proxy of the test database, which can refuse or silently hold its connections. */
export interface Proxy {
  readonly url: string
  /** Closes all connections and refuses new ones. */
  refuse(): Promise<void>
  accept(): Promise<void>
  /**
   * Forwards nothing more on open connections. With `permanently`, new connections are accepted but forward nothing
   * either.
   */
  swallow(permanently?: boolean): void
  close(): Promise<void>
  readonly connections: number
}

export async function startProxy(url: string): Promise<Proxy> {
  const { hostname, port, username, password, pathname } = new URL(url)
  const host = decodeURIComponent(hostname)
  const target = host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port: Number(port) }
  const sockets = new Set<Socket>()
  let isMute = false
  const server = createServer((client) => {
    if (isMute) {
      sockets.add(client.on('error', () => {}).resume())
      return
    }
    const upstream = connect(target)
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one)
      one.pipe(other)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  })
  const own = await listenOnFreePort(server)
  const refuse = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  return {
    url: `postgresql://${username}:${password}@127.0.0.1:${own}${pathname}`,
    refuse,
    accept: () => {
      isMute = false
      return listenOn(server, own)
    },
    swallow: (forGood = false) => {
      isMute = forGood
      for (const socket of sockets) {
        socket.unpipe()
        socket.resume()
      }
    },
    close: async () => {
      if (server.listening) await refuse()
    },
    get connections() {
      return sockets.size / 2
    },
  }
}
