import { formatPosition, type Position, parsePosition, type Wal } from '../../sql/wal.ts'
import type { Settings } from '../../tasks/settings.ts'
import { formatCookieName, formatSetCookie, readCookie } from '../http/cookies.ts'
import type { Header } from '../http/reply.ts'
import type { EdgeRequest } from '../http/server.ts'
import type { Caller } from './auth.ts'

/**
 * Tracks the WAL positions of callers' writes and reads. A standby serves a list only if it has replayed up to the
 * caller's position, otherwise the primary does. Answers carry the position, and clients send it back. This process
 * remembers it for clients that don't.
 */
export interface Positions {
  /**
   * Returns the position that the request's lists must include: the furthest one in the header, the cookie or memory.
   */
  requiredPosition(asked: IdentifiedRequest): Position
  /** Tracks a request that may write, or report a write. */
  track(asked: IdentifiedRequest): WrittenPosition
}

/** A request with its caller. */
export interface IdentifiedRequest {
  readonly request: EdgeRequest
  readonly caller: Caller | null
  readonly address: string
}

/** Position of one request's writes. */
export interface WrittenPosition {
  /** Remembers the current position for the caller. */
  remember(): void
  /** Remembers the position and returns its headers for the answer. */
  headers(): readonly Header[]
}

type CallerKey = number | string

const POSITION_HEADER = 'millrace-position'
// Maximum number of callers whose positions are remembered individually.
const MAX_POSITIONS = 100_000
const ALL_CALLERS = ''

/** @param forMs time after which every standby in use has replayed a write. */
export function createPositions(settings: Settings, wal: Wal, forMs: number, max = MAX_POSITIONS): Positions {
  const memory = new PositionMemory(forMs, max)
  const cookie = formatCookieName(settings, 'position')
  // The second `forMs` covers a standby that was chosen just before it fell behind.
  const scope = { path: '/', sameSite: 'Lax', seconds: (2 * forMs) / 1000 } as const
  return {
    requiredPosition: ({ request, caller, address }) => {
      const given = [request.header(POSITION_HEADER), readCookie(request, cookie) ?? '']
      return Math.max(...given.map((text) => parsePosition(text) ?? 0), memory.get(caller?.ownerId, address))
    },
    track: ({ request, caller, address }) => {
      const callerKey = caller?.ownerId ?? address
      const remember = (): void => memory.set(callerKey, wal.end)
      return {
        remember,
        headers: () => {
          remember()
          const text = formatPosition(wal.end)
          const header: Header = [POSITION_HEADER, text]
          // Browsers do not add Authorization by themselves, so only a request without it needs the cookie.
          return request.header('authorization') === ''
            ? [header, formatSetCookie(settings, cookie, text, scope)]
            : [header]
        },
      }
    },
  }
}

/** Remembers positions by account, or by address without one, for one to two times `forMs`. */
class PositionMemory {
  readonly #forMs: number
  readonly #max: number
  #recent = new Map<CallerKey, Position>()
  #older = new Map<CallerKey, Position>()
  #turnsAt = 0

  constructor(forMs: number, max: number) {
    this.#forMs = forMs
    this.#max = max
  }

  get(...all: readonly (CallerKey | null | undefined)[]): Position {
    this.#turn()
    let position = 0
    for (const callerKey of [...all, ALL_CALLERS])
      for (const map of [this.#recent, this.#older])
        position = Math.max(position, callerKey == null ? 0 : (map.get(callerKey) ?? 0))
    return position
  }

  set(callerKey: CallerKey, position: Position): void {
    this.#turn()
    // If the memory is full, a single position for all callers replaces its entries.
    if (this.#recent.size >= this.#max) {
      let furthest = position
      for (const one of this.#recent.values()) furthest = Math.max(furthest, one)
      this.#recent = new Map([[ALL_CALLERS, furthest]])
    }
    this.#recent.set(callerKey, Math.max(position, this.#recent.get(callerKey) ?? 0))
  }

  #turn(): void {
    const now = performance.now()
    if (now < this.#turnsAt) return
    this.#older = now < this.#turnsAt + this.#forMs ? this.#recent : new Map()
    this.#recent = new Map()
    this.#turnsAt = now + this.#forMs
  }
}
