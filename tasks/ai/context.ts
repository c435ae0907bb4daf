import type { TaskContext } from '../context.ts'

/** What a turn is told beside the conversation, and where it is from. */
export interface Grounding {
  /** Follows the agent's own instructions. */
  readonly system: string
  /** For the readers of the answer. */
  readonly sources: readonly unknown[]
}

/** What is to be known for an answer; null where nothing was asked for. Retrieval comes in here. */
export function contextFor(_ctx: TaskContext, _question: string): Promise<Grounding | null> {
  return Promise.resolve(null)
}
