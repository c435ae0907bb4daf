import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { stopAfterFile } from '../services.ts'

/** Stand-in for a transcription provider that speaks OpenAI's protocol: forms in, JSON or server-sent events out. */

export interface TranscriptionRequest {
  readonly path: string
  readonly authorization: string
  /** Form fields other than the file, in order. Repeated fields are joined by commas. */
  readonly fields: Readonly<Record<string, string>>
  /** Uploaded file; null if the form has none. */
  readonly file: { readonly name: string; readonly type: string; readonly bytes: Buffer } | null
}

type Answer = (response: ServerResponse, asked: TranscriptionRequest) => void

export interface TranscriptionStandIn {
  readonly url: string
  /** Complete requests so far. */
  readonly asked: TranscriptionRequest[]
  /** Answers a complete request. */
  answer: Answer
  /** Answers a request before its body arrives; null waits for the body. */
  early: ((response: ServerResponse) => void) | null
}

/** Returns a valid WAV file with `seconds` of silence at 8 kHz. `seed` varies its content. */
export function createSilentWav(seconds: number, seed = 0): Buffer {
  const size = Math.round(seconds * 8000)
  const bytes = Buffer.alloc(44 + size, 128)
  bytes.write('RIFF', 0)
  bytes.writeUInt32LE(36 + size, 4)
  bytes.write('WAVEfmt ', 8)
  bytes.writeUInt32LE(16, 16)
  bytes.writeUInt16LE(1, 20)
  bytes.writeUInt16LE(1, 22)
  bytes.writeUInt32LE(8000, 24)
  bytes.writeUInt32LE(8000, 28)
  bytes.writeUInt16LE(1, 32)
  bytes.writeUInt16LE(8, 34)
  bytes.write('data', 36)
  bytes.writeUInt32LE(size, 40)
  if (size >= 4) bytes.writeUInt32LE(seed, 44)
  return bytes
}

export const answerWithJson =
  (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer =>
  (response) => {
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(typeof body === 'string' ? body : JSON.stringify(body))
  }

/** Returns a function that rejects a request in OpenAI's format. */
export const rejectWith = (
  status: number,
  message: string,
  code: string | null = null,
  headers: Readonly<Record<string, string>> = {},
): Answer =>
  answerWithJson(status, { error: { message, type: 'invalid_request_error', param: 'file', code } }, headers)

export const WORDS = ['Hello', ' there,', ' Zoë.']
const TEXT = WORDS.join('')
const SEGMENTS = [
  { start: 0, end: 1.5, text: 'Hello' },
  { start: 1.5, end: 4.25, text: ' there, Zoë.' },
]
const createEvent = (data: object): string => `data: ${JSON.stringify(data)}\n\n`

/** Returns the events of a streamed answer, as `gpt-transcribe` sends them. */
export const createEvents = (words: readonly string[] = WORDS, more: object = {}): string[] => [
  ...words.map((delta) => createEvent({ type: 'transcript.text.delta', delta })),
  createEvent({
    type: 'transcript.text.done',
    text: words.join(''),
    languages: [{ code: 'en' }],
    usage: { type: 'duration', seconds: 12 },
    ...more,
  }),
]

export const beginEvents = (response: ServerResponse): ServerResponse => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  return response
}

/** Answers as the real models do, and rejects requests that they reject. */
export const transcribe: Answer = (response, asked) => {
  const { model, response_format: format, stream } = asked.fields
  const { 'timestamp_granularities[]': times } = asked.fields
  if (asked.file === null) return rejectWith(400, 'file is required')(response, asked)
  if (model === 'voxtral-mini-latest') {
    const usage = { prompt_audio_seconds: 12, prompt_tokens: 4, completion_tokens: 30, total_tokens: 34 }
    const segments = asked.fields.timestamp_granularities === 'segment' ? SEGMENTS : []
    return answerWithJson(200, { model, text: TEXT, language: 'en', segments, usage })(response, asked)
  }
  if (model === 'gpt-4o-transcribe-diarize') {
    if (format !== 'diarized_json' || asked.fields.chunking_strategy !== 'auto')
      return rejectWith(400, 'chunking_strategy is required for diarization models')(response, asked)
    const usage = { type: 'tokens', input_tokens: 120, output_tokens: 30, total_tokens: 150 }
    const said = SEGMENTS.map((one, n) =>
      createEvent({ type: 'transcript.text.segment', id: `seg_${n}`, speaker: 'AB'[n], ...one }),
    )
    const done = createEvent({ type: 'transcript.text.done', text: TEXT, usage })
    return void beginEvents(response).end([...said, done].join(''))
  }
  if (/^whisper/.test(model ?? '')) {
    if (format !== 'verbose_json' || times !== 'segment')
      return rejectWith(400, 'the stand-in knows only what it is asked')(response, asked)
    // Groq reports no usage.
    const usage = model === 'whisper-1' ? { usage: { type: 'duration', seconds: 5 } } : {}
    const segments = SEGMENTS.map((one, id) => ({ id, seek: 0, tokens: [1], temperature: 0, ...one }))
    const answer = { task: 'transcribe', language: 'english', duration: 4.25, text: TEXT, segments, ...usage }
    return answerWithJson(200, answer)(response, asked)
  }
  if (format !== 'json' || times !== undefined)
    return rejectWith(400, `response_format '${format}' is not compatible with model '${model}'`)(
      response,
      asked,
    )
  const tokens = { type: 'tokens', input_tokens: 120, output_tokens: 30, total_tokens: 150 }
  const more = model === 'gpt-transcribe' ? {} : { languages: undefined, usage: tokens }
  if (stream === 'true') return void beginEvents(response).end(createEvents(WORDS, more).join(''))
  answerWithJson(200, { text: TEXT, ...more })(response, asked)
}

export async function startTranscriptionServer(): Promise<TranscriptionStandIn> {
  const server = createServer((request, response) => {
    response.on('error', () => {})
    request.on('error', () => {})
    standIn.early?.(response)
    void parseRequest(request).then(
      (asked) => {
        standIn.asked.push(asked)
        if (!response.headersSent) standIn.answer(response, asked)
      },
      () => response.destroy(),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stopAfterFile(async () => {
    server.closeAllConnections()
    server.close()
  })
  const standIn: TranscriptionStandIn = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked: [],
    answer: transcribe,
    early: null,
  }
  return standIn
}

async function parseRequest(request: IncomingMessage): Promise<TranscriptionRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const headers = { 'content-type': request.headers['content-type'] ?? '' }
  const form = await new Response(Buffer.concat(chunks), { headers }).formData()
  const file = form.get('file')
  const fields: Record<string, string> = {}
  for (const [name, value] of form) if (typeof value === 'string') fields[name] = form.getAll(name).join(',')
  return {
    path: request.url!,
    authorization: request.headers.authorization ?? '',
    fields,
    file:
      file instanceof File
        ? { name: file.name, type: file.type, bytes: Buffer.from(await file.arrayBuffer()) }
        : null,
  }
}
