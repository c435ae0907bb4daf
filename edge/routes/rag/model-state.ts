import type { EmbedResult } from '../../../tasks/rag/embed.ts'
import type { Edge } from '../../pipeline/context.ts'
import { type Asking, embeddedBy } from './question.ts'

/** What is known of the model that embeds questions. Finding out takes a job, and where no worker has it no end. */

interface Known {
  /** Why there are no embeddings; null when all is well. */
  problem: string | null
  /** When that was found out last; never: -Infinity. */
  at: number
  looking: boolean
}

const FRESH_MS = 10_000
// A model that is in memory or can't be had answers in milliseconds; one that is being loaded takes longer.
const PROBE_MS = 3000

const UNKNOWN = 'The model has not been asked yet; it is being asked now'
const SILENT = 'The model is being loaded, or no worker serves the queue rag_model'

const states = new WeakMap<Edge, Known>()

/** What was known of the model when this was asked; what is not fresh is found out meanwhile, for who asks next. */
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
    // Known stays what was; the next to ask tries again.
    edge.log.warn({ err: error }, 'The model of embeddings could not be asked')
  } finally {
    known.looking = false
  }
}

function problemOf(result: EmbedResult | null): string | null {
  return result === null ? SILENT : result.reason
}
