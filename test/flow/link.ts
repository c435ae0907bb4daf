import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'

export interface Link {
  /** Connection string of the database by way of this link. */
  readonly url: string
  /** Breaks every connection and refuses new ones. */
  cut(): void
  /** Lets new connections through; what was silenced stays silent. */
  mend(): void
  /** Lets nothing more through, without a word to either side; nor does who connects from then on hear one. */
  silence(): void
}

/** A way to the database that can be cut: connections break, and new ones are refused. */
export async function openLink(url: string): Promise<Link> {
  const open = new Set<Socket>()
  let whole = true
  let silent = false
  const at = await standBetween(url, open, (near, dial) => {
    if (!whole) return void near.destroy()
    if (silent) {
      open.add(near.on('error', () => {}).resume())
      return
    }
    const far = dial()
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from)
      from
        .on('error', () => {})
        .on('close', () => {
          open.delete(from)
          to.destroy()
        })
      from.pipe(to)
    }
  })
  return {
    url: at,
    cut: () => {
      whole = false
      for (const socket of open) socket.destroy()
    },
    silence: () => {
      silent = true
      for (const socket of open) {
        socket.unpipe()
        socket.pause()
      }
    },
    mend: () => {
      whole = true
      silent = false
    },
  }
}

/**
 * Listens where a client may go in place of the database's socket, and answers that address; `dial` connects to the
 * database. What is in `open` is closed after the file.
 */
export async function standBetween(
  url: string,
  open: ReadonlySet<Socket>,
  accept: (near: Socket, dial: () => Socket) => void,
): Promise<string> {
  const target = new URL(url)
  const folder = await mkdtemp(join(tmpdir(), 'link-'))
  const name = `.s.PGSQL.${target.port}`
  const dial = (): Socket => connect(join(decodeURIComponent(target.hostname), name))
  const server = createServer((near) => accept(near, dial))
  await new Promise<void>((resolve) => server.listen(join(folder, name), resolve))
  after(async () => {
    server.close()
    for (const socket of open) socket.destroy()
    await rm(folder, { recursive: true, force: true })
  })
  return url.replace(target.hostname, encodeURIComponent(folder))
}
