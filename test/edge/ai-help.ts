import { after } from 'node:test'
import { type Frame, Stream } from '../service.ts'
import { type ModelStandIn, startModelServer } from '../standins/models.ts'
import { type Api, startEdgeAndDatabase } from './harness.ts'
import { startOwnWorker } from './own-worker.ts'

/** Runs conversations with an edge, a worker, the real SDK and a stand-in for the provider. */

/** Starts a worker for conversations on a database. The worker stops after the test file. */
export async function startChatWorker(url: string, env: Readonly<Record<string, string>>): Promise<void> {
  await startOwnWorker(url, 'ai', env)
}

/** Returns settings that point to the stand-in for the provider. */
export const createModelEnv = (models: ModelStandIn): Record<string, string> => ({
  OPENAI_API_KEY: 'sk-test',
  OPENAI_BASE_URL: models.url,
  MISTRAL_API_KEY: 'key of mistral',
  MISTRAL_BASE_URL: models.url,
  WORKER_MAX_TRIES: '2',
  OPEN_AREAS: 'ai,jobs',
})

/** Starts an edge, a worker and a stand-in for the provider on a new database. */
export async function startChatService(env: Readonly<Record<string, string>> = {}) {
  const models = await startModelServer()
  after(() => models.stop())
  const all = { ...createModelEnv(models), ...env }
  const database = await startEdgeAndDatabase({ env: all })
  await startChatWorker(database.url, all)
  return { models, env: all, ...database }
}

export const CHAT_PATH = '/api/v1/ai/chat'

/** Opens a stream with a POST, like clients without EventSource. */
export async function postStream(
  api: Api,
  json: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Stream> {
  const abort = new AbortController()
  const response = await fetch(`http://127.0.0.1:${api.port}${CHAT_PATH}/stream`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(json),
    signal: abort.signal,
  })
  return new Stream(response, abort)
}

export async function openStream(
  api: Api,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Stream> {
  const abort = new AbortController()
  const response = await fetch(`http://127.0.0.1:${api.port}${path}`, { headers, signal: abort.signal })
  return new Stream(response, abort)
}

/** Joins the chunks since the last `restart`. They form the answer that a subscriber has after these frames. */
export function joinChunks(frames: readonly Frame[]): string {
  const from = frames.findLastIndex(({ event }) => event === 'restart')
  return frames
    .slice(from + 1)
    .filter(({ event }) => event === 'chunk')
    .map(({ data }) => data.content)
    .join('')
}

/** Reads the sequence numbers from frame ids, which start with the message id. */
export const sequenceNumbersOf = (frames: readonly Frame[]): number[] =>
  frames.map(({ id }) => Number(id.split('.')[1]))
