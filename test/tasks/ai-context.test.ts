import assert from 'node:assert/strict'
import { test } from 'node:test'
import { retrieveContext } from '../../tasks/ai/context.ts'
import type { TaskContext } from '../../tasks/context.ts'
import type { Search } from '../../tasks/rag/searcher.ts'

/** An agent's answer gets context, searched by a provider's vectors or by words. */

const retrievalOptions = { collection: 'facts', top_k: 5, sees_all: false }

/**
 * Retrieves context with a provider that never returns vectors. Calls `asking` when the provider receives a request.
 */
async function runSearch(signal: AbortSignal, asking: () => void): Promise<Search[]> {
  const searches: Search[] = []
  await retrieveContext(
    {
      job: { ownerId: null },
      settings: { rag: { embeddings: 'openai', model: 'm' } },
      signal,
      log: { info: () => {}, warn: () => {}, error: () => {} },
      providers: {
        embed: (_: readonly string[], until: AbortSignal) =>
          new Promise((_, reject) => {
            until.addEventListener('abort', () => reject(until.reason))
            asking()
          }),
        retrieval: {
          modelOf: async () => 'm',
          search: async (search: Search) => {
            searches.push(search)
            return []
          },
        },
      },
    } as unknown as TaskContext,
    'When does the harbour close?',
    retrievalOptions,
  )
  return searches
}

test('a question that is not embedded in time is searched by keywords', async (t) => {
  const late = new AbortController()
  const limits: number[] = []
  t.mock.method(AbortSignal, 'timeout', (ms: number) => {
    limits.push(ms)
    return late.signal
  })
  const searches = await runSearch(new AbortController().signal, () => late.abort())
  assert.deepEqual([limits, searches.map(({ vector }) => vector)], [[5000], [null]])
})

test('an abort during the embedding ends the attempt', async () => {
  const abort = new AbortController()
  await assert.rejects(
    runSearch(abort.signal, () => abort.abort('cancelled')),
    (reason) => reason === 'cancelled',
  )
})
