import { Worker } from 'node:worker_threads'
import type { SlowStatements } from '../../sql/connections/slow.ts'
import { Failure, fail } from '../../sql/errors.ts'
import type { SearchAnswer, SearchQuestion, SearchThreadData, SlowSearch } from './search-thread.ts'
import type { CollectionRequest, Search, SearchHit } from './searcher.ts'

/**
 * Searches collections on a separate thread. Scoring 10,000 chunks takes a millisecond there. A job would take seven
 * milliseconds and leave a row behind.
 */
export interface Retrieval {
  /** Returns the embedding model of a collection; null without vectors. @throws fail('rag.missing'). */
  modelOf(asked: CollectionRequest): Promise<string | null>
  /** Returns the best chunks, best first. @throws fail('rag.missing'), fail('rag.busy'). */
  search(search: Search): Promise<readonly SearchHit[]>
  close(): Promise<void>
}

const THREAD_URL = new URL('./search-main.ts', import.meta.url)

export interface RetrievalOptions extends Omit<SearchThreadData, 'slowQueryMs'> {
  /** Receives the slow statements of the thread. */
  readonly slowStatements?: SlowStatements | undefined
}

interface PendingQuestion {
  /** Origin of the question, for reports of slow statements; undefined if these are not reported. */
  readonly origin: unknown
  readonly resolve: (answer: SearchAnswer) => void
  readonly reject: (error: Error) => void
}

/**
 * Creates the client of the search thread. The first question starts the thread. After a crash, the next question
 * restarts it.
 */
export function createRetrieval({ slowStatements, ...options }: RetrievalOptions): Retrieval {
  const pending = new Map<number, PendingQuestion>()
  let lastId = 0
  let thread: Worker | null = null
  let closed = false

  const start = (): Worker => {
    const workerData: SearchThreadData = { ...options, slowQueryMs: slowStatements?.thresholdMs ?? 0 }
    const worker = new Worker(THREAD_URL, { workerData })
    // Keep the process alive only while questions are pending.
    worker.unref()
    worker.on('message', (answer: SearchAnswer | SlowSearch) => {
      if ('statement' in answer) return reportSlowStatement(answer, slowStatements, pending)
      pending.get(answer.id)?.resolve(answer)
      pending.delete(answer.id)
      if (pending.size === 0) worker.unref()
    })
    const onLost = (error: Error): void => {
      if (thread !== worker) return
      thread = null
      for (const { reject } of pending.values()) reject(error)
      pending.clear()
    }
    worker.on('error', onLost)
    worker.on('exit', () => onLost(new Error('The search thread exited')))
    return worker
  }

  const ask = async (question: (id: number) => SearchQuestion): Promise<SearchAnswer> => {
    if (closed) throw fail('service.stopping')
    thread ??= start()
    const worker = thread
    const id = ++lastId
    const answer = await new Promise<SearchAnswer>((resolve, reject) => {
      pending.set(id, { origin: slowStatements?.origin(), resolve, reject })
      worker.ref()
      worker.postMessage(question(id))
    })
    if ('code' in answer) throw new Failure(answer.code, answer.detail)
    if ('error' in answer) throw new Error(`Search failed: ${answer.error}`)
    return answer
  }

  return {
    modelOf: async (asked) => {
      const answer = await ask((id) => ({ id, modelOf: asked }))
      return 'model' in answer ? answer.model : null
    },
    search: async (search) => {
      const answer = await ask((id) => ({ id, search }))
      return 'hits' in answer ? answer.hits : []
    },
    close: async () => {
      closed = true
      await thread?.terminate()
    },
  }
}

function reportSlowStatement(
  { id = 0, ...statement }: SlowSearch,
  slow: SlowStatements | undefined,
  pending: ReadonlyMap<number, PendingQuestion>,
): void {
  slow?.report(statement, pending.get(id)?.origin)
}
