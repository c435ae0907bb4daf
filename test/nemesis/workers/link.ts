import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** The network between one HTTP worker and the edges. Its port stays the same while edges restart. */
export interface EdgeLink {
  readonly port: number
  /** Breaks every connection and refuses new ones. */
  cut(): void
  /** Stops all traffic without closing any connection. `answers` stops only data from the edges. */
  silence(what: 'all' | 'answers'): void
  /** Allows new connections; silenced connections stay silent. */
  restore(): void
  close(): void
}

/** Opens a link. `pickPort` returns the port of an edge for each new connection; null if no edge is up. */
export async function openEdgeLink(pickPort: () => number | null): Promise<EdgeLink> {
  const open = new Set<Socket>()
  const answering = new Set<Socket>()
  let state: 'whole' | 'cut' | 'all' | 'answers' = 'whole'
  const hold = (socket: Socket, other: Socket | null): void => {
    open.add(socket)
    socket
      .on('error', () => {})
      .on('close', () => {
        open.delete(socket)
        answering.delete(socket)
        other?.destroy()
      })
  }
  const server = createServer((near) => {
    const port = pickPort()
    if (state === 'cut' || port === null) return void near.on('error', () => {}).destroy()
    if (state === 'all') return hold(near.resume(), null)
    const far = connect({ host: '127.0.0.1', port })
    hold(near, far)
    hold(far, near)
    answering.add(far)
    near.pipe(far)
    if (state === 'whole') far.pipe(near)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      state = 'cut'
      for (const socket of open) socket.destroy()
    },
    silence: (what) => {
      state = what
      for (const socket of what === 'all' ? open : answering) socket.unpipe().pause()
    },
    restore: () => {
      state = 'whole'
    },
    close: () => {
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
}
