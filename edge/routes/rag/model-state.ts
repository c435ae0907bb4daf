import type { EmbedResult } from '../../../tasks/rag/embed.ts'
import type { Edge } from '../../pipeline/context.ts'
import { type Asking, embeddedBy } from './question.ts'

/** The known state of the model that embeds questions. A check takes a job, which never ends if no worker serves it. */

interface Known {
  /** Why there are no embeddings; null when all is well. */
  problem: string | null
  /** When it was last checked; -Infinity if never. */
  at: number
  looking: boolean
}

const FRESH_MS = 10_000
// A model that is in memory or unavailable answers in milliseconds; one that is being loaded takes longer.
const PROBE_MS = 3000

const UNKNOWN = 'The model has not been checked yet; it is being checked now'
const SILENT = 'The model is being loaded, or no worker serves the queue rag_model'

const states = new WeakMap<Edge, Known>()

/** The last known problem of the model. If it is not fresh, it is checked in the background, for the next caller. */
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
    // Keeps the last known state; the next caller tries again.
    edge.log.warn({ err: error }, 'The embedding model could not be checked')
  } finally {
    known.looking = false
  }
}

function problemOf(result: EmbedResult | null): string | null {
  return result === null ? SILENT : result.reason
}
