import { availableParallelism } from 'node:os'
import { hash, verify } from '@node-rs/argon2'

/**
 * argon2id with 19 MiB and two passes (OWASP Password Storage Cheat Sheet): about 22 ms of a core each, on libuv's
 * threads. Only one per two cores runs at a time, or a burst of logins would starve everything else on the machine.
 */
export interface Passwords {
  hash(password: string): Promise<string>
  /** Compares with a stored hash; without one the same work is done for nothing, so that both take as long. */
  verify(stored: string | null, password: string): Promise<boolean>
}

const ARGON2ID = 2
const PARAMETERS = { algorithm: ARGON2ID, memoryCost: 19_456, timeCost: 2, parallelism: 1 }

export function createPasswords(
  concurrency = Math.max(1, Math.floor(availableParallelism() / 2)),
): Passwords {
  const limited = limiter(concurrency)
  let decoy: Promise<string> | null = null
  return {
    hash: (password) => limited(() => hash(password, PARAMETERS)),
    verify: async (stored, password) => {
      decoy ??= limited(() => hash('no account has this password', PARAMETERS))
      const against = stored ?? (await decoy)
      const matches = await limited(() => verify(against, password))
      return stored !== null && matches
    },
  }
}

function limiter(concurrency: number): <T>(work: () => Promise<T>) => Promise<T> {
  let active = 0
  const waiting: (() => void)[] = []
  return async (work) => {
    if (active >= concurrency) await new Promise<void>((resolve) => waiting.push(resolve))
    else active++
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next === undefined) active--
      else next()
    }
  }
}
