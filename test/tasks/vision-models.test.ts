import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { AI_PROVIDERS } from '../../tasks/ai/providers.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createChildPool } from '../../workers/children/pool.ts'
import { openDocument } from '../../workers/providers/documents/documents.ts'
import { buildRawPdf, buildStreamObject } from '../pdfs.ts'
import { createRecordedOutputOptions } from '../recognized.ts'
import { DEPTH } from '../runs.ts'
import { drawSign } from '../sign.ts'

/** Starts a provider that speaks OpenAI's protocol and answers as the test chooses. */
interface ReceivedRequest {
  readonly path: string
  readonly authorization: string
  readonly body: { model: string; messages: { content: { type: string; image_url?: { url: string } }[] }[] }
}
const asked: ReceivedRequest[] = []
type Answer = { status: number; text: string | object[] | null; finish?: string } | 'silence' | 'a beginning'
let answer: Answer = { status: 200, text: '' }
const server = createServer(async (request, response) => {
  asked.push({
    path: request.url ?? '',
    authorization: request.headers.authorization ?? '',
    body: JSON.parse(await readBody(request)),
  })
  if (answer === 'silence') return
  if (answer === 'a beginning') {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{"choices":')
    return
  }
  const body =
    answer.status === 200
      ? {
          choices: [
            {
              index: 0,
              finish_reason: answer.finish ?? 'stop',
              message: { role: 'assistant', content: answer.text },
            },
          ],
        }
      : { error: { message: 'no' } }
  response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
})
await once(server.listen(0, '127.0.0.1'), 'listening')
const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`

const children = createChildPool({
  log: { warn: () => {} } as never,
  ...(DEPTH === 'quick' ? createRecordedOutputOptions() : {}),
})
after(async () => {
  await children.close()
  server.closeAllConnections()
  server.close()
})

async function readBody(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += chunk
  return text
}

async function read(provider = 'openai', more: Record<string, string> = {}) {
  const prefix = provider.toUpperCase()
  const { visionProvider: vision } = parseSettings({
    VISION_PROVIDER: provider,
    AI_PROVIDER: provider,
    [`${prefix}_API_KEY`]: `key of ${provider}`,
    [`${prefix}_BASE_URL`]: baseUrl,
    ...more,
  })
  asked.length = 0
  const options = {
    mediaType: 'application/pdf',
    vision,
    maxPages: 10,
    signal: new AbortController().signal,
  }
  const reader = await openDocument(children, async () => scan, options)
  const page = await reader.read(1)
  await reader.close()
  return page
}

const words = 'Harbour office, room 12'
// The page is small, because drawing it takes time. The size does not affect which model reads it.
const scan = buildRawPdf([
  '<< /Type /Catalog /Pages 2 0 R >>',
  '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
  '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 432 96] /Contents 4 0 R /Resources << /XObject << /Im 5 0 R >> >> >>',
  buildStreamObject('432 0 0 96 0 0 cm /Im Do'),
  buildStreamObject(
    drawSign(words).toBuffer('image/jpeg'),
    '/Type /XObject /Subtype /Image /Width 900 /Height 200 /BitsPerComponent 8 /ColorSpace /DeviceRGB /Filter /DCTDecode',
  ),
])

for (const provider of AI_PROVIDERS) {
  test(`a page is read by a model of ${provider}`, async () => {
    answer = { status: 200, text: 'What the model saw\n' }
    const page = await read(provider, { AI_MODEL: 'sharp-eyes' })
    assert.deepEqual(
      [page.status, page.method, page.model, page.text],
      ['read', 'vision', `${provider}/sharp-eyes`, 'What the model saw'],
    )
    assert.equal(asked.length, 1)
    const [{ path, authorization, body }] = asked as [ReceivedRequest]
    assert.deepEqual(
      [path, authorization, body.model],
      ['/v1/chat/completions', `Bearer key of ${provider}`, 'sharp-eyes'],
    )
    const picture = body.messages[0]!.content.find(({ type }) => type === 'image_url')!.image_url!.url
    const png = Buffer.from(picture.replace('data:image/png;base64,', ''), 'base64')
    assert.deepEqual(png, Buffer.from(page.image!.png!))
  })
}

test('a page is read by a reasoning model of Mistral, without its reasoning', async () => {
  const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'Let me see' }] }
  answer = { status: 200, text: [thinking, { type: 'text', text: 'What the model saw\n' }] }
  const page = await read('mistral')
  assert.deepEqual([page.method, page.text], ['vision', 'What the model saw'])
  assert.match(page.model!, /^mistral\//)
})

test('Tesseract reads the page whenever the model fails', async () => {
  for (const wrong of [
    { status: 401, text: null },
    { status: 200, text: null },
    { status: 200, text: ' ' },
    { status: 200, text: 'Harbour off', finish: 'length' },
    { status: 200, text: 'Harbour off', finish: 'model_length' },
    { status: 200, text: 'Harbour off', finish: 'content_filter' },
  ]) {
    answer = wrong
    const page = await read()
    assert.deepEqual([page.status, page.model, page.text], ['read', 'tesseract/eng', words])
  }
  for (const late of ['silence', 'a beginning'] as const) {
    answer = late
    const page = await read('openai', { AI_TIMEOUT_SECONDS: '1' })
    assert.deepEqual([page.model, page.text], ['tesseract/eng', words])
  }
})

test('a provider needs its key', () => {
  assert.throws(() => parseSettings({ VISION_PROVIDER: 'groq' }), /VISION_PROVIDER: needs GROQ_API_KEY/)
})
