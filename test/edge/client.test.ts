import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { writeClient } from '../client/main.ts'
import { createEmail, getSharedEdge } from './harness.ts'
import { createLedger } from './ledger.ts'
import { createSlug } from './orgs-help.ts'

/** Generates, compiles and runs the package of `npm run client` against a service. */

// The package is compiled during the test, so its types are unknown here. `use.ts` below checks them.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Untyped = any
type Frame = { readonly event: string; readonly id: string; readonly data: Untyped }

const run = promisify(execFile)
const MODULES_FOLDER = fileURLToPath(new URL('../../node_modules', import.meta.url))
const { api, ...database } = await getSharedEdge()
const { query } = database
const ledger = createLedger(database)
const owner = await api.register(createEmail('owner'))
const key = (
  await api.post('/api/v1/auth/keys', { token: owner.token, json: { name: 'client', scopes: ['*:write'] } })
).json.key as string

const folder = join(mkdtempSync(join(tmpdir(), 'millrace-client-')), 'package')
await writeClient(folder)
const files = readdirSync(folder).sort()
symlinkSync(MODULES_FOLDER, join(folder, 'node_modules'))
const { createClient } = (await import(pathToFileURL(join(folder, 'dist/index.js')).href)) as {
  createClient: (options: object) => Untyped
}
const baseUrl = `http://127.0.0.1:${api.port}`
const createTestClient = (options: object = {}) => createClient({ baseUrl, key, ...options })
const client = createTestClient()

/** Returns a `fetch` that applies the next trick to each response. */
const createTamperingFetch = (...tricks: readonly ((response: Response) => Response)[]) => {
  const seen: Request[] = []
  const send = async (input: unknown): Promise<Response> => {
    const trick = tricks[seen.length] ?? ((response) => response)
    seen.push((input as Request).clone())
    return trick(await fetch(input as Request))
  }
  return { seen, fetch: send as typeof fetch }
}
const failConnection = (): never => {
  throw new TypeError('fetch failed')
}
/** Cuts the connection of a response after its first event. */
const cutAfterFirstEvent = (response: Response): Response => {
  let text = ''
  const decoder = new TextDecoder()
  const cut = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      text += decoder.decode(chunk, { stream: true })
      controller.enqueue(chunk)
      if (text.includes('\ndata:') && text.endsWith('\n\n')) controller.error(new TypeError('terminated'))
    },
  })
  return new Response(response.body!.pipeThrough(cut), response)
}

test('the package has its sources and compiled files only', () => {
  assert.deepEqual(files, ['README.md', 'dist', 'package.json', 'src', 'tsconfig.json'])
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  assert.deepEqual(Object.keys(dependencies), ['eventsource-parser', 'openapi-fetch'])
})

test('its types accept valid calls and reject invalid ones', async () => {
  const program = join(folder, 'use')
  await run('mkdir', [program])
  writeFileSync(
    join(program, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: { target: 'es2024', module: 'nodenext', types: ['node'], strict: true, noEmit: true },
      include: ['*.ts'],
    }),
  )
  writeFileSync(join(program, 'package.json'), '{"type":"module"}')
  writeFileSync(
    join(program, 'use.ts'),
    `
import { createClient, JobError, RequestError, type Schemas } from '../dist/index.js'
const client = createClient({ baseUrl: 'http://localhost', key: async () => 'k', retries: 2 })
export const list = async (): Promise<number> => {
  const { data, error } = await client.GET('/api/v1/jobs', { params: { query: { status: 'queued', limit: 5 } } })
  if (error !== undefined) throw new Error(error.detail)
  for await (const { event, id, data } of client.jobs.events('x')) console.log(event, id, data.progress?.current, data.status)
  const result = await client.jobs.result<{ read: number }>('x', { signal: AbortSignal.timeout(1) })
  const document: Schemas['Document'] = await client.documents.upload(new Blob(['x']), { title: 't', onProgress: ({ loaded }) => console.log(loaded) })
  console.log(document.id, result.read, JobError, RequestError)
  return data.length
}
// @ts-expect-error
export const text = () => client.GET('/api/v1/jobs', { params: { query: { limit: '5' } } })
// @ts-expect-error
export const unknown = () => client.GET('/api/v1/jobs', { params: { query: { queue: 'documents' } } })
// @ts-expect-error
export const field = () => client.documents.upload(new Blob([]), { colour: 'red' })
// @ts-expect-error
export const needed = () => createClient({ key: 'k' })
`,
  )
  const tsc = join(MODULES_FOLDER, 'typescript-native/bin/tsc')
  await run(process.execPath, [tsc, '-p', program]).catch(({ stdout }) => assert.fail(String(stdout)))
})

describe('the key', () => {
  test('is sent with each request, also from a function called each time', async () => {
    const { data } = await client.GET('/api/v1/auth/me')
    assert.equal(data!.email, owner.email)
    let asked = 0
    const other = createTestClient({ key: async () => `${asked++ === 0 ? 'no.such.token' : key}` })
    assert.equal((await other.GET('/api/v1/auth/me')).response.status, 401)
    assert.equal((await other.GET('/api/v1/auth/me')).data!.id, owner.id)
  })

  test('is overridden by a header of the request', async () => {
    const { response } = await client.GET('/api/v1/auth/me', { headers: { authorization: 'Bearer nothing' } })
    assert.equal(response.status, 401)
  })
})

describe('a request without an answer', () => {
  const [slug, other] = [createSlug('mill'), createSlug('two')]

  test('is retried with its key and takes effect once', async () => {
    const { seen, fetch } = createTamperingFetch(failConnection, failConnection)
    const { data, response } = await createTestClient({ fetch }).POST('/api/v1/orgs', {
      body: { name: 'Mill', slug },
    })
    assert.equal(data!.slug, slug)
    assert.equal(response.headers.get('idempotent-replayed'), 'true')
    const keys = new Set(seen.map(({ headers }) => headers.get('idempotency-key')))
    assert.deepEqual([seen.length, keys.size], [3, 1])
    assert.equal((await query('select from organization where slug = $1', [slug])).length, 1)
  })

  test('throws the error after the maximum retries', async () => {
    const { seen, fetch } = createTamperingFetch(failConnection, failConnection, failConnection)
    await assert.rejects(createTestClient({ fetch, retries: 1 }).GET('/api/v1/auth/me'), /fetch failed/)
    assert.equal(seen.length, 2)
  })

  test('is retried for a retryable status, but not after a refusal', async () => {
    const busy = () => new Response('{"detail":"busy"}', { status: 503, headers: { 'retry-after': '0' } })
    const { seen, fetch } = createTamperingFetch(busy, busy)
    assert.equal((await createTestClient({ fetch }).GET('/api/v1/auth/me')).data!.id, owner.id)
    assert.equal(seen.length, 3)
    const once = createTamperingFetch()
    const { error } = await createTestClient({ fetch: once.fetch }).POST('/api/v1/orgs', {
      body: { name: 'Mill', slug },
    })
    assert.match(error!.detail, /slug|taken/i)
    assert.equal(once.seen.length, 1)
  })

  test('waits for the first request with its key', async () => {
    const running = () =>
      new Response('{"detail":"running"}', { status: 409, headers: { 'retry-after': '0' } })
    const { seen, fetch } = createTamperingFetch(failConnection, running)
    const body = { name: 'Two', slug: other }
    const { data } = await createTestClient({ fetch }).POST('/api/v1/orgs', { body })
    assert.deepEqual([data!.slug, seen.length], [other, 3])
  })

  test('is not retried once aborted', async () => {
    const gone = new AbortController()
    const { seen, fetch } = createTamperingFetch(() => {
      gone.abort(new Error('given up'))
      return failConnection()
    })
    await assert.rejects(
      createTestClient({ fetch }).GET('/api/v1/auth/me', { signal: gone.signal }),
      /fetch failed|given up/,
    )
    assert.equal(seen.length, 1)
  })
})

describe('job events', () => {
  const collect = async (stream: AsyncIterable<Frame>) => {
    const all: Frame[] = []
    for await (const frame of stream) all.push(frame)
    return all
  }

  test('arrive as they happen, until the job ends', async () => {
    const id = await ledger.add(owner.id)
    const seen: string[] = []
    for await (const { event, data } of client.jobs.events(id)) {
      seen.push(`${event} ${data.status} ${data.label}`.trim())
      if (seen.length === 1) {
        await ledger.claim(id)
        await ledger.progress(id, 'Page 1 of 2', 1, 2)
      } else if (data.label === 'Page 1 of 2') {
        assert.deepEqual(data.progress, { current: 1, total: 2 })
        await ledger.finish(id, 'done', { result: { read: 2 } })
      }
    }
    assert.deepEqual([seen[0], seen.at(-1)], ['status queued', 'status done Page 1 of 2'])
    assert.ok(seen.includes('status running Page 1 of 2'))
    assert.deepEqual(await client.jobs.result(id), { read: 2 })
  })

  test('resume after a lost connection without duplicates', async () => {
    const id = await ledger.add(owner.id)
    await ledger.claim(id)
    await ledger.progress(id, 'Page 1 of 2', 1, 2)
    const { seen, fetch } = createTamperingFetch(cutAfterFirstEvent, cutAfterFirstEvent)
    const stream = createTestClient({ fetch }).jobs.events(id)
    const first = await stream.next()
    await ledger.progress(id, 'Page 2 of 2', 2, 2)
    await ledger.finish(id, 'done', { result: null })
    const frames = [first.value!, ...(await collect(stream))]
    const ids = frames.map((frame) => Number(frame.id))
    assert.deepEqual(
      ids,
      [...new Set(ids)].sort((a, b) => a - b),
    )
    assert.equal(frames.at(-1)!.data.status, 'done')
    assert.ok(seen.length >= 2)
    const resumed = seen.map(({ headers }) => headers.get('last-event-id'))
    assert.equal(resumed[0], null)
    for (const id of resumed.slice(1)) assert.ok(ids.includes(Number(id)), String(id))
  })

  test('end with the result, or with an error that has the state', async () => {
    const done = await ledger.addFinished(owner.id, 'done', { result: { n: 1 } })
    assert.deepEqual(await client.jobs.result(done), { n: 1 })
    const failed = await ledger.addFinished(owner.id, 'failed', { code: 'job.timeout', detail: 'Too slow' })
    await assert.rejects(client.jobs.result(failed), (error: Untyped) => {
      assert.deepEqual([error.name, error.message, error.state!.status], ['JobError', 'Too slow', 'failed'])
      return true
    })
  })

  test('of an unknown job are an error, and stop on abort', async () => {
    await assert.rejects(client.jobs.result('none'), (error: Untyped) => {
      assert.deepEqual([error.name, error.response.status], ['RequestError', 404])
      return true
    })
    const gone = new AbortController()
    const id = await ledger.add(owner.id)
    const stream = client.jobs.events(id, { signal: gone.signal })
    await stream.next()
    gone.abort(new Error('given up'))
    await assert.rejects(stream.next(), /given up|abort/i)
  })

  test('a stream without further events ends', async () => {
    const id = await ledger.addFinished(owner.id)
    const [last] = await collect(client.jobs.events(id))
    const after = client.events(`/api/v1/jobs/${id}/events`, { lastEventId: last!.id })
    assert.deepEqual(await after.next(), { done: true, value: undefined })
  })
})

describe('an upload', () => {
  const bytes = Buffer.alloc(300_000, 'a mill grinds\n')

  test('reports progress and stores the file with its fields', async () => {
    const loads: number[] = []
    const document = await client.documents.upload(new File([bytes], 'mill.txt', { type: 'text/plain' }), {
      title: 'The mill',
      kind: 'report',
      note: 'of the valley',
      onProgress: ({ loaded, total }: { loaded: number; total: number }) => loads.push(loaded / total),
    })
    assert.deepEqual(
      [document.title, document.kind, document.byte_size],
      ['The mill', 'report', bytes.length],
    )
    assert.equal(document.note, 'of the valley')
    assert.ok(loads.length > 1)
    assert.deepEqual([loads.at(-1), loads.toSorted((a, b) => a - b)], [1, loads])
    const content = await client.GET('/api/v1/documents/{id}/content', {
      params: { path: { id: document.id } },
      parseAs: 'arrayBuffer',
    })
    assert.ok(Buffer.from(content.data as ArrayBuffer).equals(bytes))
  })

  test('is retried completely after a lost answer and stored once', async () => {
    const { seen, fetch } = createTamperingFetch(failConnection)
    const document = await createTestClient({ fetch }).documents.upload(new Blob([`${bytes}.`]), {
      filename: 'again.txt',
      onProgress: () => {},
    })
    assert.equal(seen.length, 2)
    assert.equal(
      (await query('select from document where sha256 = decode($1, $2)', [document.sha256, 'hex'])).length,
      1,
    )
  })

  test('throws the reason if it is rejected', async () => {
    await assert.rejects(
      client.documents.upload(new Blob(['x']), { kind: 'x'.repeat(100) }),
      (error: Untyped) => {
        assert.equal(error.response.status, 422)
        assert.match(error.message, /kind/)
        assert.ok(error.problem!.errors!.length > 0)
        return true
      },
    )
  })
})

test('a folder with other content stays unchanged', async () => {
  const other = mkdtempSync(join(tmpdir(), 'millrace-other-'))
  writeFileSync(join(other, 'letter.txt'), 'mine')
  await assert.rejects(writeClient(other), /neither empty nor/)
  assert.deepEqual(readdirSync(other), ['letter.txt'])
})
