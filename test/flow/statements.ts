import type { Socket } from 'node:net'
import { listenUntilFileEnds } from './link.ts'

const SYNC_TYPE = 0x53
const QUERY_TYPE = 0x51
const READY_TYPE = 0x5a

/**
 * A cut of a connection at its nth statement: before the server receives the statement, or after it ran but before the
 * answer.
 */
export interface Cut {
  readonly statement: number
  readonly when: 'before' | 'after'
}

/** A link to the database that can be cut at a given statement. */
export interface CountingLink {
  readonly url: string
  /** Resets the count, and cuts the connection at the given statement; null cuts none. */
  arm(cut: Cut | null): void
  /** Number of statements since the last `arm`. */
  readonly statements: number
}

/**
 * Opens a link that counts the statements of connections with this application name, or of all connections if omitted.
 */
export async function openCountingLink(url: string, applicationName?: string): Promise<CountingLink> {
  const open = new Set<Socket>()
  let cut: Cut | null = null
  let statements = 0
  const at = await listenUntilFileEnds(url, open, (near, dial) => {
    const far = dial()
    const messages = new StatementCounter(applicationName)
    let swallow = false
    const end = (): void => {
      near.destroy()
      far.destroy()
    }
    for (const socket of [near, far]) {
      open.add(socket)
      socket.on('error', end).on('close', () => {
        open.delete(socket)
        end()
      })
    }
    near.on('data', (chunk: Buffer) => {
      for (let count = messages.countStatements(chunk); count > 0; count--) {
        if (++statements !== cut?.statement) continue
        if (cut.when === 'before') return end()
        swallow = true
      }
      far.write(chunk)
    })
    far.on('data', (chunk: Buffer) => {
      if (!swallow) near.write(chunk)
      else if (chunk.length >= 6 && chunk[chunk.length - 6] === READY_TYPE) end()
    })
  })
  return {
    url: at,
    arm: (next) => {
      cut = next
      statements = 0
    },
    get statements() {
      return statements
    },
  }
}

/** Splits a client's data into messages (https://www.postgresql.org/docs/current/protocol-message-formats.html). */
class StatementCounter {
  private rest: Buffer = Buffer.alloc(0)
  private counted: boolean | null = null
  private readonly applicationName: string | undefined

  constructor(applicationName: string | undefined) {
    this.applicationName = applicationName
  }

  /**
   * Returns the number of statements that end in this chunk; 0 for connections that are not counted. A statement ends
   * with Sync or is a simple Query.
   */
  countStatements(chunk: Buffer): number {
    const data = Buffer.concat([this.rest, chunk])
    let at = 0
    let count = 0
    if (this.counted === null) {
      if (data.length < 4 || data.length < data.readInt32BE(0)) {
        this.rest = data
        return 0
      }
      at = data.readInt32BE(0)
      const parameters = data.toString('utf8', 8, at).split('\0')
      const name = parameters[parameters.indexOf('application_name') + 1]
      this.counted = this.applicationName === undefined || name === this.applicationName
    }
    while (data.length - at >= 5) {
      const end = at + 1 + data.readInt32BE(at + 1)
      if (end > data.length) break
      if (data[at] === SYNC_TYPE || data[at] === QUERY_TYPE) count++
      at = end
    }
    this.rest = data.subarray(at)
    return this.counted ? count : 0
  }
}
