import { formatPosition, type Position, parsePosition, type Wal } from '../../sql/wal.ts'
import type { Settings } from '../../tasks/settings.ts'
import { cookieName, readCookie, setCookie } from '../http/cookies.ts'
import type { Header } from '../http/reply.ts'
import type { EdgeRequest } from '../http/server.ts'
import type { Caller } from './auth.ts'

/**
 * What callers have written or been shown, as positions in the WAL: a list comes from a standby that has come to the
 * position of its caller, or from the primary. Callers are told their position and send it back; for those who don't,
 * it is remembered, by this process only.
 */
export interface Positions {
  /** What the lists of a request have to show: the furthest of its header, its cookie and what is remembered. */
  wanted(asked: Asked): Position
  /** The position of a request that may write, or show what was written. */
  of(asked: Asked): WrittenPosition
}

/** A request whose caller is known. */
export interface Asked {
  readonly request: EdgeRequest
  readonly caller: Caller | null
  readonly address: string
}

/** What one request has written. */
export interface WrittenPosition {
  /** Remembers what its caller has been told by now. */
  remember(): void
  /** Headers of its answer, which is remembered. */
  headers(): readonly Header[]
}

type Who = number | string

const POSITION_HEADER = 'millrace-position'
// The most callers that are remembered by name.
const MAX_POSITIONS = 100_000
const EVERYBODY = ''

/** `forMs`: after this time every standby that is read has what was written. */
export function createPositions(settings: Settings, wal: Wal, forMs: number, max = MAX_POSITIONS): Positions {
  const memory = new Memory(forMs, max)
  const cookie = cookieName(settings, 'position')
  // One for a standby that was used a moment ago.
  const scope = { path: '/', sameSite: 'Lax', seconds: (2 * forMs) / 1000 } as const
  return {
    wanted: ({ request, caller, address }) => {
      const given = [request.header(POSITION_HEADER), readCookie(request, cookie) ?? '']
      return Math.max(...given.map((text) => parsePosition(text) ?? 0), memory.get(caller?.ownerId, address))
    },
    of: ({ request, caller, address }) => {
      const who = caller?.ownerId ?? address
      const remember = (): void => memory.set(who, wal.end)
      return {
        remember,
        headers: () => {
          remember()
          const text = formatPosition(wal.end)
          const header: Header = [POSITION_HEADER, text]
          // Browsers send no Authorization of their own.
          return request.header('authorization') === ''
            ? [header, setCookie(settings, cookie, text, scope)]
            : [header]
        },
      }
    },
  }
}

/** Positions by account, or by address without one; each is kept for one to two times `forMs`. */
class Memory {
  readonly #forMs: number
  readonly #max: number
  #recent = new Map<Who, Position>()
  #older = new Map<Who, Position>()
  #turnsAt = 0

  constructor(forMs: number, max: number) {
    this.#forMs = forMs
    this.#max = max
  }

  get(...all: readonly (Who | null | undefined)[]): Position {
    this.#turn()
    let position = 0
    for (const who of [...all, EVERYBODY])
      for (const map of [this.#recent, this.#older])
        position = Math.max(position, who == null ? 0 : (map.get(who) ?? 0))
    return position
  }

  set(who: Who, position: Position): void {
    this.#turn()
    // Then nobody has a position of their own.
    if (this.#recent.size >= this.#max) {
      let furthest = position
      for (const one of this.#recent.values()) furthest = Math.max(furthest, one)
      this.#recent = new Map([[EVERYBODY, furthest]])
    }
    this.#recent.set(who, Math.max(position, this.#recent.get(who) ?? 0))
  }

  #turn(): void {
    const now = performance.now()
    if (now < this.#turnsAt) return
    this.#older = now < this.#turnsAt + this.#forMs ? this.#recent : new Map()
    this.#recent = new Map()
    this.#turnsAt = now + this.#forMs
  }
}
