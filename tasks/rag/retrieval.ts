import { Worker } from 'node:worker_threads'
import { Failure, fail } from '../../sql/errors.ts'
import type { SlowStatements } from '../../sql/slow.ts'
import type { SearchAnswer, SearchQuestion, SearchThreadData, SlowSearch } from './search-thread.ts'
import type { AskedCollection, Search, SearchHit } from './searcher.ts'

/**
 * Retrieval for this process, on one thread of its own that holds the collections. Scoring 10,000 chunks takes a
 * millisecond there; a job would take seven, and leave a row that nobody needs.
 */
export interface Retrieval {
  /** The model of a collection's vectors, or null. @throws fail('rag.missing'). */
  modelOf(asked: AskedCollection): Promise<string | null>
  /** The best chunks, best first. @throws fail('rag.missing'), fail('rag.busy'). */
  search(search: Search): Promise<readonly SearchHit[]>
  close(): Promise<void>
}

const THREAD = new URL('./search-main.ts', import.meta.url)

export interface RetrievalOptions extends Omit<SearchThreadData, 'slowQueryMs'> {
  /** Gets statements that take long. */
  readonly slow?: SlowStatements | undefined
}

interface Asked {
  /** What it is asked for, while slow statements are told. */
  readonly origin: unknown
  readonly resolve: (answer: SearchAnswer) => void
  readonly reject: (error: Error) => void
}

/** The thread starts with the first question, and again after a question that has killed it. */
export function createRetrieval({ slow, ...options }: RetrievalOptions): Retrieval {
  const asked = new Map<number, Asked>()
  let last = 0
  let thread: Worker | null = null
  let closed = false

  const start = (): Worker => {
    const workerData: SearchThreadData = { ...options, slowQueryMs: slow?.fromMs ?? 0 }
    const worker = new Worker(THREAD, { workerData })
    // Only pending questions keep the process alive.
    worker.unref()
    worker.on('message', (answer: SearchAnswer | SlowSearch) => {
      if ('statement' in answer) return tell(answer, slow, asked)
      asked.get(answer.id)?.resolve(answer)
      asked.delete(answer.id)
      if (asked.size === 0) worker.unref()
    })
    const lost = (error: Error): void => {
      if (thread !== worker) return
      thread = null
      for (const { reject } of asked.values()) reject(error)
      asked.clear()
    }
    worker.on('error', lost)
    worker.on('exit', () => lost(new Error('The search thread has ended')))
    return worker
  }

  const ask = async (question: (id: number) => SearchQuestion): Promise<SearchAnswer> => {
    if (closed) throw fail('service.stopping')
    thread ??= start()
    const worker = thread
    const id = ++last
    const answer = await new Promise<SearchAnswer>((resolve, reject) => {
      asked.set(id, { origin: slow?.origin(), resolve, reject })
      worker.ref()
      worker.postMessage(question(id))
    })
    if ('code' in answer) throw new Failure(answer.code, answer.detail)
    if ('error' in answer) throw new Error(`The search failed: ${answer.error}`)
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

function tell(
  { id = 0, ...statement }: SlowSearch,
  slow: SlowStatements | undefined,
  asked: ReadonlyMap<number, Asked>,
): void {
  slow?.tell(statement, asked.get(id)?.origin)
}
