import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { after } from 'node:test'

export interface Link {
  /** Connection string of the database through this link. */
  readonly url: string
  /** Breaks every connection and refuses new ones. */
  cut(): void
  /** Allows new connections; silenced connections stay silent. */
  restore(): void
  /** Stops all traffic, also of new connections, without closing any. `answers` stops only data from the server. */
  silence(what?: 'all' | 'answers'): void
  /** Silences the link until `rejoin`, even after `restore`, as if the server were unreachable. */
  isolate(): void
  rejoin(): void
  /** Delays each chunk by `ms` milliseconds. */
  slow(ms: number): void
}

/** Opens a link to the database that can be cut, silenced and slowed. It closes after the test file. */
export async function openLink(url: string): Promise<Link> {
  const { close, ...link } = await openUnownedLink(url)
  after(close)
  return link
}

/** Like {@link openLink}, but the caller closes it. */
export async function openUnownedLink(url: string): Promise<Link & { close(): Promise<void> }> {
  const open = new Set<Socket>()
  const answering = new Set<Socket>()
  let whole = true
  let silent = false
  let isolated = false
  let slowMs = 0
  const standing = await listenBetween(url, open, (near, dial) => {
    if (!whole) return void near.destroy()
    if (silent || isolated) {
      open.add(near.on('error', () => {}).resume())
      return
    }
    const far = dial()
    answering.add(far)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from)
      from
        .on('error', () => {})
        .on('close', () => {
          open.delete(from)
          answering.delete(from)
          to.destroy()
        })
      from.pipe(delayChunks(() => slowMs)).pipe(to)
    }
  })
  const silence = (what: 'all' | 'answers' = 'all'): void => {
    for (const socket of what === 'all' ? open : answering) {
      socket.unpipe()
      socket.pause()
    }
  }
  return {
    ...standing,
    cut: () => {
      whole = false
      for (const socket of open) socket.destroy()
    },
    silence: (what) => {
      silent = true
      silence(what)
    },
    isolate: () => {
      isolated = true
      silence()
    },
    rejoin: () => {
      isolated = false
    },
    slow: (ms) => {
      slowMs = ms
    },
    restore: () => {
      whole = true
      silent = false
      slowMs = 0
    },
  }
}

/** Returns a stream that delays each chunk by the current value of `delayMs`. */
function delayChunks(delayMs: () => number): Transform {
  return new Transform({
    transform: (chunk, _encoding, done) => {
      const ms = delayMs()
      if (ms === 0) done(null, chunk)
      else setTimeout(done, ms, null, chunk)
    },
  })
}

/**
 * Listens in place of the database's socket and returns the URL. `dial` connects to the database. Every socket in
 * `open` is closed after the test file.
 */
export async function listenUntilFileEnds(
  url: string,
  open: ReadonlySet<Socket>,
  accept: (near: Socket, dial: () => Socket) => void,
): Promise<string> {
  const standing = await listenBetween(url, open, accept)
  after(standing.close)
  return standing.url
}

async function listenBetween(
  url: string,
  open: ReadonlySet<Socket>,
  accept: (near: Socket, dial: () => Socket) => void,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const target = new URL(url)
  const folder = await mkdtemp(join(tmpdir(), 'link-'))
  const name = `.s.PGSQL.${target.port}`
  const dial = (): Socket => connect(join(decodeURIComponent(target.hostname), name))
  const server = createServer((near) => accept(near, dial))
  await new Promise<void>((resolve) => server.listen(join(folder, name), resolve))
  return {
    url: url.replace(target.hostname, encodeURIComponent(folder)),
    close: async () => {
      server.close()
      for (const socket of open) socket.destroy()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
