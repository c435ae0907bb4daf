import type { EmbedResult } from '../../../tasks/rag/embed.task.ts'
import type { Edge } from '../../pipeline/context.ts'
import { embedQuestion, type JobOrigin } from './question.ts'

/**
 * Caches the state of the model that embeds questions. Each check is a job, which never ends if no worker serves it.
 */

interface ModelState {
  /** Reason why the model is unavailable; null if it is available. */
  problem: string | null
  /** Time of the last check, by `performance.now()`; -Infinity if there was none. */
  checkedAt: number
  isChecking: boolean
}

const MAX_STATE_AGE_MS = 10_000
// A model that is loaded or unavailable answers in milliseconds, whereas loading takes longer.
const PROBE_TIMEOUT_MS = 3000

const NOT_CHECKED_MESSAGE = 'The model has not been checked yet; a check is running'
const NO_ANSWER_MESSAGE = 'The model is loading, or no worker serves the queue rag_model'

const statesByEdge = new WeakMap<Edge, ModelState>()

/**
 * Returns the last known problem of the model; null if it is available. If the state is stale, starts a check in the
 * background, for later callers.
 */
export function getModelProblem(edge: Edge, origin: JobOrigin): string | null {
  let state = statesByEdge.get(edge)
  if (state === undefined) {
    state = { problem: NOT_CHECKED_MESSAGE, checkedAt: Number.NEGATIVE_INFINITY, isChecking: false }
    statesByEdge.set(edge, state)
  }
  const { problem } = state
  if (!state.isChecking && performance.now() - state.checkedAt > MAX_STATE_AGE_MS)
    void checkModel(edge, state, origin)
  return problem
}

async function checkModel(edge: Edge, state: ModelState, origin: JobOrigin): Promise<void> {
  state.isChecking = true
  try {
    state.problem = describeProblem(await embedQuestion(edge, undefined, origin, PROBE_TIMEOUT_MS))
    state.checkedAt = performance.now()
  } catch (error) {
    // The last known state remains, and the next caller retries.
    edge.log.warn({ err: error }, 'Embedding model check failed')
  } finally {
    state.isChecking = false
  }
}

function describeProblem(result: EmbedResult | null): string | null {
  return result === null ? NO_ANSWER_MESSAGE : result.reason
}
