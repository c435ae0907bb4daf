import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { createMultipart } from '../edge/harness.ts'
import { startProcess } from '../service.ts'
import {
  beginEvents,
  createEvents,
  createSilentWav,
  startTranscriptionServer,
  transcribe,
  WORDS,
} from '../standins/transcriptions.ts'
import { until } from '../until.ts'
import { SHORT_LEASE } from './crash.ts'
import { startReader } from './reader.ts'

/**
 * A worker is killed while a provider transcribes. Another worker repeats the transcription, and the usage counts both
 * requests.
 */

const { url, query } = await createTestDatabase()
const server = await startTranscriptionServer()
const env = { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: server.url, WORKER_QUEUES: 'voice', ...SHORT_LEASE }
const firstWorker = await startProcess('worker', url, env)
const client = await startReader(url, env)

test('another worker repeats the transcription of a killed one, and the first request counts with unknown cost', async () => {
  server.answer = (response) => void beginEvents(response).write(createEvents()[0])
  const { body, type } = createMultipart(createSilentWav(2), { name: 'call.wav' })
  const answered = client.fetch('/voice/transcriptions', {
    method: 'POST',
    headers: { 'content-type': type },
    body: new Uint8Array(body),
  })
  await until('the first word has arrived', async () => {
    const [row] = await query(`select count(*)::int as n from job_event where kind = 'chunk'`)
    return Number(row!.n) > 0
  })
  server.answer = transcribe
  await Promise.all([firstWorker.kill(), startProcess('worker', url, env)])
  const response = await answered
  const made = (await response.json()) as { text: string; id: string; job_id: string; cost: number }
  assert.equal(response.status, 200, JSON.stringify(made))
  assert.deepEqual([made.text, made.cost], [WORDS.join(''), 0.0009])
  assert.equal(server.asked.length, 2)
  const used = await query('select cost::float8 as cost, success, estimated from ai_usage order by id')
  assert.deepEqual(used, [
    { cost: 0.0009, success: true, estimated: false },
    { cost: null, success: false, estimated: true },
  ])
  const kinds = await query(
    `select kind from job_event where job_id = $1 and kind in ('chunk', 'restart') order by seq`,
    [made.job_id],
  )
  assert.deepEqual(kinds.map(({ kind }) => kind).slice(0, 3), ['chunk', 'restart', 'chunk'])
  const stored = await query('select status, text, calls from voice_transcription')
  assert.deepEqual(stored, [{ status: 'done', text: WORDS.join(''), calls: 2 }])
})
