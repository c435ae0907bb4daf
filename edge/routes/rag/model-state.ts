import type { EmbedResult } from '../../../tasks/rag/embed.ts'
import type { Edge } from '../../pipeline/context.ts'
import { type Asking, embeddedBy } from './question.ts'

/** The last known state of the model that embeds questions. A check is a job, which never ends if no worker serves it. */

interface Known {
  /** The reason why the model is unavailable; null if it is available. */
  problem: string | null
  /** Time of the last check, by `performance.now()`; -Infinity if there was none. */
  at: number
  looking: boolean
}

const FRESH_MS = 10_000
// A model that is loaded or unavailable answers in milliseconds; loading takes longer.
const PROBE_MS = 3000

const UNKNOWN = 'The model has not been checked yet; a check is running'
const SILENT = 'The model is loading, or no worker serves the queue rag_model'

const states = new WeakMap<Edge, Known>()

/**
 * The last known problem of the model; null if it is available. If the state is stale, starts a check in the background,
 * for the next caller.
 */
export function modelProblem(edge: Edge, asking: Asking): string | null {
  let known = states.get(edge)
  if (known === undefined) {
    known = { problem: UNKNOWN, at: Number.NEGATIVE_INFINITY, looking: false }
    states.set(edge, known)
  }
  const { problem } = known
  if (!known.looking && performance.now() - known.at > FRESH_MS) void look(edge, known, asking)
  return problem
}

async function look(edge: Edge, known: Known, asking: Asking): Promise<void> {
  known.looking = true
  try {
    known.problem = problemOf(await embeddedBy(edge, undefined, asking, PROBE_MS))
    known.at = performance.now()
  } catch (error) {
    // Keeps the last known state; the next caller retries.
    edge.log.warn({ err: error }, 'Embedding model check failed')
  } finally {
    known.looking = false
  }
}

function problemOf(result: EmbedResult | null): string | null {
  return result === null ? SILENT : result.reason
}
