import { LRUCache } from 'lru-cache'
import { formatPosition, type Position, parsePosition, type Wal } from '../../../sql/reads/wal.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { formatCookieName, formatSetCookie, readCookie } from '../../http/cookies.ts'
import type { Header } from '../../http/reply.ts'
import type { EdgeRequest } from '../../http/server.ts'
import type { Caller } from '../access/auth.ts'

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
const MAX_POSITIONS = 20_000

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

/** Remembers positions for `forMs`, by account, or by address without one. */
class PositionMemory {
  readonly #forMs: number
  readonly #positions: LRUCache<CallerKey, Position>
  // The furthest position that was dropped because the memory was full. It applies to all callers.
  #dropped: Position = 0
  #droppedUntil = 0

  constructor(forMs: number, max: number) {
    this.#forMs = forMs
    this.#positions = new LRUCache({
      max,
      ttl: forMs,
      ttlResolution: 0,
      dispose: (position, _callerKey, reason) => {
        if (reason === 'evict') this.#drop(position)
      },
    })
  }

  get(...all: readonly (CallerKey | null | undefined)[]): Position {
    const positions = all.map((callerKey) => (callerKey == null ? 0 : (this.#positions.get(callerKey) ?? 0)))
    return Math.max(this.#currentDropped, ...positions)
  }

  set(callerKey: CallerKey, position: Position): void {
    this.#positions.set(callerKey, Math.max(position, this.#positions.get(callerKey) ?? 0))
  }

  get #currentDropped(): Position {
    return performance.now() < this.#droppedUntil ? this.#dropped : 0
  }

  #drop(position: Position): void {
    this.#dropped = Math.max(position, this.#currentDropped)
    this.#droppedUntil = performance.now() + this.#forMs
  }
}
