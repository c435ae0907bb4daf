import assert from 'node:assert/strict'
import { after } from 'node:test'
import { shareByFiles } from '../services.ts'
import {
  createSilentWav,
  startTranscriptionServer,
  type TranscriptionStandIn,
  transcribe,
} from '../standins/transcriptions.ts'
import { until } from '../until.ts'
import { createCast } from './accounts-help.ts'
import { type Answered, type Api, createMultipart, startEdgeAndDatabase } from './harness.ts'
import { startOwnWorker } from './own-worker.ts'

/** Runs transcriptions with an edge, a worker, the real SDK and a stand-in for the providers. */

export const PATH = '/voice/transcriptions'

/** Starts the service once for all files of this process. Its database also contains transcriptions of other files. */
export const startTranscribing = shareByFiles(async () => {
  const server = await startTranscriptionServer()
  const env = {
    OPENAI_API_KEY: 'sk-test',
    OPENAI_BASE_URL: server.url,
    MISTRAL_API_KEY: 'mi-test',
    MISTRAL_BASE_URL: server.url,
    WORKER_MAX_TRIES: '2',
  }
  const database = await startEdgeAndDatabase({ env })
  await startOwnWorker(database.url, 'voice', env)
  const cast = await createCast(database.api)
  return { server, env, ...database, ...cast }
})

let seeds = 0
/** Returns a recording that no test has uploaded before. */
export const createRecording = (seconds = 1): Buffer => createSilentWav(seconds, ++seeds)

export const createUpload = (
  bytes: string | Uint8Array,
  fields: Readonly<Record<string, string>> = {},
  name = 'call.wav',
) => {
  const { body, type } = createMultipart(bytes, { fields, name })
  return { body, headers: { 'content-type': type } }
}

/** Uploads a file and requests its transcription. */
export const send = (
  api: Api,
  token: string,
  bytes: string | Uint8Array,
  fields: Readonly<Record<string, string>> = {},
  search = '',
): Promise<Answered> => api.post(`${PATH}${search}`, { token, ...createUpload(bytes, fields) })

/** Holds the provider's requests until `go` is called. Requests after `go` are answered immediately. */
export function holdRequests(server: TranscriptionStandIn): { go(): void; readonly waiting: number } {
  const waiting: (() => void)[] = []
  server.answer = (response, asked) => void waiting.push(() => transcribe(response, asked))
  const go = (): void => {
    server.answer = transcribe
    for (const one of waiting.splice(0)) one()
  }
  after(go)
  return {
    go,
    get waiting() {
      return waiting.length
    },
  }
}

export async function waitForJobEnd(api: Api, token: string, jobId: string) {
  return until('the job has ended', async () => {
    const { json } = await api.get(`/api/v1/jobs/${jobId}`, { token })
    return ['done', 'failed', 'cancelled'].includes(json.status) && json
  })
}

export function assertRefusal(answer: Answered, status: number, detail: RegExp | string): void {
  assert.equal(answer.status, status, answer.text)
  if (typeof detail === 'string') assert.equal(answer.json.detail, detail)
  else assert.match(answer.json.detail, detail)
}
