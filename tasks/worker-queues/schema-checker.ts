import type { Piscina } from 'piscina'
import { createSlots } from '../../sql/connections/slots.ts'
import { fail } from '../../sql/errors.ts'
import type { CheckRequest, SchemaProblem } from './schema-thread.ts'

/**
 * Checks values against callers' JSON Schemas, on threads of its own. A schema may take exponential time or memory, so a
 * check has a time limit, after which its thread is killed. Owners take turns.
 */
export interface SchemaChecker {
  /**
   * Returns the first problem of each value, and null for those that match. Values are JSON texts.
   * @throws fail('database.busy') if other checks take too long.
   */
  check(owner: number, schema: unknown, values: readonly string[]): Promise<readonly (SchemaProblem | null)[]>
  /** Returns the reason why a schema cannot be compiled; null if it can. */
  compile(owner: number, schema: unknown): Promise<string | null>
  close(): Promise<void>
}

export type { SchemaProblem } from './schema-thread.ts'

// Slots, and threads: one more, because an owner without a slot gets an extra one.
const SLOTS = 1
// A check of 10,000 small values takes some 20 ms. But a thread may be starting, and the machine may be busy.
const CHECK_MS = 5_000
const WAIT_MS = 10_000
const MAX_HEAP_MB = 192
const IDLE_MS = 60_000

const TOO_SLOW: SchemaProblem = { path: [], message: 'takes too long to check against the schema' }

/** @param checkMs time limit of a check */
export function createSchemaChecker(checkMs = CHECK_MS): SchemaChecker {
  const slots = createSlots(SLOTS)
  let opened: Promise<Piscina> | null = null
  // Most processes never check a schema.
  const open = async (): Promise<Piscina> => {
    const { Piscina } = await import('piscina')
    return new Piscina({
      filename: new URL('./schema-thread.ts', import.meta.url).href,
      minThreads: 0,
      maxThreads: SLOTS + 1,
      idleTimeout: IDLE_MS,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    })
  }

  /** Runs a request; null if it took too long or too much memory. */
  const run = async (owner: number, request: CheckRequest): Promise<(SchemaProblem | null)[] | null> => {
    if ((await slots.reserve(owner, 1, WAIT_MS)) === 0) throw fail('database.busy')
    opened ??= open()
    const pool = await opened
    try {
      return await pool.run(request, { signal: AbortSignal.timeout(checkMs) })
    } catch {
      return null
    } finally {
      slots.release(owner, 1)
    }
  }

  return {
    check: async (owner, schema, values) =>
      (await run(owner, { schema: JSON.stringify(schema), values })) ?? values.map(() => TOO_SLOW),
    compile: async (owner, schema) => {
      const found = await run(owner, { schema: JSON.stringify(schema), values: null })
      return found === null ? 'takes too long to compile' : (found[0]?.message ?? null)
    },
    close: async () => (await opened)?.destroy(),
  }
}

let shared: SchemaChecker | null = null

/** Returns the checker of this thread, for tasks. It ends with the thread. */
export function getSchemaChecker(): SchemaChecker {
  shared ??= createSchemaChecker()
  return shared
}
