import assert from 'node:assert/strict'
import { after } from 'node:test'
import { sharedByFiles } from '../services.ts'
import {
  recording,
  type TranscriptionStandIn,
  transcribe,
  transcriptionServer,
} from '../standins/transcriptions.ts'
import { until } from '../until.ts'
import { castOf } from './accounts-help.ts'
import { type Answered, type Api, edgeAndDatabase, multipart } from './harness.ts'
import { startOwnWorker } from './own-worker.ts'

/** Runs transcriptions with an edge, a worker, the real SDK and a stand-in for the providers. */

export const PATH = '/voice/transcriptions'

/** Started once for the files of this process, so transcriptions of other files exist. */
export const transcribing = sharedByFiles(async () => {
  const server = await transcriptionServer()
  const env = {
    OPENAI_API_KEY: 'sk-test',
    OPENAI_BASE_URL: server.url,
    MISTRAL_API_KEY: 'mi-test',
    MISTRAL_BASE_URL: server.url,
    WORKER_MAX_TRIES: '2',
  }
  const database = await edgeAndDatabase({ env })
  await startOwnWorker(database.url, 'voice', env)
  const cast = await castOf(database.api)
  return { server, env, ...database, ...cast }
})

let seeds = 0
/** Returns a recording that no test has uploaded before. */
export const newRecording = (seconds = 1): Buffer => recording(seconds, ++seeds)

export const asUpload = (
  bytes: string | Uint8Array,
  fields: Readonly<Record<string, string>> = {},
  name = 'call.wav',
) => {
  const { body, type } = multipart(bytes, { fields, name })
  return { body, headers: { 'content-type': type } }
}

/** Uploads a file and requests its transcription. */
export const send = (
  api: Api,
  token: string,
  bytes: string | Uint8Array,
  fields: Readonly<Record<string, string>> = {},
  search = '',
): Promise<Answered> => api.post(`${PATH}${search}`, { token, ...asUpload(bytes, fields) })

/** Holds requests until `go`, after which requests are answered immediately. */
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

export async function ended(api: Api, token: string, jobId: string) {
  return until('the job has ended', async () => {
    const { json } = await api.get(`/api/v1/jobs/${jobId}`, { token })
    return ['done', 'failed', 'cancelled'].includes(json.status) && json
  })
}

export function assertIs(answer: Answered, status: number, detail: RegExp | string): void {
  assert.equal(answer.status, status, answer.text)
  if (typeof detail === 'string') assert.equal(answer.json.detail, detail)
  else assert.match(answer.json.detail, detail)
}
