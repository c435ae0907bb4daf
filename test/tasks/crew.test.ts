import assert from 'node:assert/strict'
import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import type { Worker } from 'node:worker_threads'
import type { PageResult } from '../../tasks/context.ts'
import { drawOnThread, openOnThreads } from '../../workers/providers/crew.ts'
import { endIdleThreads } from '../../workers/providers/page-threads.ts'
import { deepPdf, mixedPdf, pageLines, scanPdf, textPdf } from '../pdfs.ts'
import { until } from '../until.ts'

const threads: Worker[] = []
subscribe('worker_threads', (message) => threads.push((message as { worker: Worker }).worker))
after(endIdleThreads)

const PDF = 'application/pdf'
const numbers = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

test('pages are read on as many threads as the document may have, and threads serve the next document', async () => {
  const before = threads.length
  for (let round = 0; round < 2; round++) {
    const reader = await openOnThreads(await textPdf(20), PDF, { vision: 'none', share: () => 2 })
    const pages = await Promise.all(numbers(reader.pageCount).map((n) => reader.read(n)))
    for (const [i, { text }] of pages.entries()) assert.equal(text, pageLines(i + 1, 20).join('\n'))
    await reader.close()
  }
  assert.equal(threads.length, before + 2)
})

test('a thread that dies over a page is replaced, and the page is read by the next one', async () => {
  await endIdleThreads()
  const reader = await openOnThreads(await textPdf(3), PDF, { vision: 'none' })
  const first = reader.read(1)
  void threads.at(-1)!.terminate()
  assert.equal((await first).status, 'read')
  assert.deepEqual(
    (await Promise.all([reader.read(2), reader.read(3)])).map((page) => page.status),
    ['read', 'read'],
  )
  await reader.close()
})

test('of pages that are read together none is lost with their thread, and a picture among them has its turn', async () => {
  await endIdleThreads()
  const reader = await openOnThreads(await mixedPdf(24, [20]), PDF, { vision: 'tesseract' })
  await reader.read(1)
  const thread = threads.at(-1)!
  const reading = numbers(24).map((n) => reader.read(n))
  const second = reading[1]!.then(() => thread.terminate())
  const pages = await Promise.all(reading)
  await second
  for (const [i, { method, text }] of pages.entries()) {
    assert.equal(method, i === 19 ? 'vision' : 'text_layer')
    assert.match(text, new RegExp(`^Page ${i + 1} of 24`))
  }
  await reader.close()
})

test('a page that kills its thread twice is given up, and the others are read', async () => {
  await endIdleThreads()
  const reader = await openOnThreads(await scanPdf(2), PDF, { vision: 'tesseract' })
  const killing = setInterval(() => threads.at(-1)!.emit('error', new Error('crashed')), 5)
  const page = await reader.read(1)
  clearInterval(killing)
  assert.deepEqual([page.status, page.givenUp], ['unread', true])
  assert.equal(page.detail, 'Reading the page crashed the reader twice')
  assert.equal((await reader.read(2)).status, 'read')
  await reader.close()
})

/** A model that never answers: late on every machine. */
async function silentModel(t: TestContext) {
  const silent = createServer().listen(0, '127.0.0.1')
  t.after(() => silent.close())
  await once(silent, 'listening')
  const baseUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/v1`
  return {
    asked: () => once(silent, 'connection'),
    vision: { provider: 'openai', name: 'm', apiKey: 'k', baseUrl, timeoutSeconds: 60 } as const,
  }
}

test('a page that takes too long is given up', async (t) => {
  // The opening has all the time that a busy machine takes.
  const { vision } = await silentModel(t)
  const reader = await openOnThreads(await scanPdf(1), PDF, { vision, limitMs: 600, openMs: 60_000 })
  const page = await reader.read(1)
  assert.deepEqual([page.status, page.givenUp], ['unread', true])
  assert.equal(page.detail, 'Reading the page took longer than 1 s')
  await reader.close()
})

test('a second chance has what is left of the time of the page', async (t) => {
  await endIdleThreads()
  const { vision, asked } = await silentModel(t)
  let jumped = 0
  const now = () => performance.now() + jumped
  const reader = await openOnThreads(await scanPdf(1), PDF, { vision, limitMs: 600_000, now })
  const reading = reader.read(1)
  await asked()
  jumped = 599_000
  void threads.at(-1)!.terminate()
  assert.equal((await reading).detail, 'Reading the page took longer than 600 s')
  await reader.close()
})

test('a document that takes too long to open has one page, which says so', async () => {
  await endIdleThreads()
  const reader = await openOnThreads(deepPdf('tree'), PDF, { vision: 'none', limitMs: 1 })
  assert.equal(reader.pageCount, 1)
  const page = await reader.read(1)
  assert.deepEqual([page.status, page.givenUp], ['unread', true])
  assert.match(page.detail!, /^Opening the document took longer than/)
})

test('where memory is short a document gives back what it holds, and waits for the others', async () => {
  await endIdleThreads()
  let tight = true
  const options = { vision: 'none', alone: () => false, tight: () => tight } as const
  const reader = await openOnThreads(await textPdf(2), PDF, options)
  const gone = once(threads.at(-1)!, 'exit')
  let read = false
  const pages = Promise.all([reader.read(1), reader.read(2)]).finally(() => (read = true))
  await gone
  assert.equal(read, false)
  tight = false
  assert.deepEqual(
    (await pages).map(({ status }) => status),
    ['read', 'read'],
  )
  await reader.close()
})

test('a page waits for memory so long in all, however often it was nearly its turn', async () => {
  await endIdleThreads()
  let tight = true
  let now = 1_000
  const options = { vision: 'none', alone: () => false, tight: () => tight, now: () => now } as const
  const reader = await openOnThreads(await textPdf(1), PDF, options)
  const opened = threads.at(-1)!
  const gone = once(opened, 'exit')
  let page: PageResult | undefined
  void reader.read(1).then((read) => (page = read))
  await gone
  now = 16_000
  tight = false
  const second = await until('a thread is taken', () => threads.at(-1) !== opened && threads.at(-1))
  // Before it has opened the document, memory is short again.
  tight = true
  await once(second, 'exit')
  now = 22_000
  assert.equal((await until('the page is read', () => page)).status, 'read')
  await reader.close()
})

test('where memory is short every picture has a thread of its own', async () => {
  await endIdleThreads()
  const before = threads.length
  const options = { vision: 'none', tight: () => true } as const
  const reader = await openOnThreads(await scanPdf(2, { sentences: 1 }), PDF, options)
  for (const n of [1, 2]) assert.match((await reader.read(n)).detail!, /no vision provider/)
  assert.equal(threads.length, before + 2)
  await reader.close()
})

test('an abort ends what is under way', async () => {
  const abort = new AbortController()
  const reader = await openOnThreads(await scanPdf(3), PDF, { vision: 'tesseract', signal: abort.signal })
  const reading = numbers(3).map((n) => reader.read(n))
  setImmediate(() => abort.abort(new Error('cancelled')))
  for (const page of await Promise.allSettled(reading))
    assert.match(String(page.status === 'rejected' && page.reason), /cancelled/)
  await assert.rejects(reader.read(1), /cancelled/)
  await reader.close()
})

test('one page is drawn; there is nothing to draw in a text', async () => {
  const { signal } = new AbortController()
  const image = await drawOnThread(await textPdf(2), PDF, 2, signal)
  assert.deepEqual([image!.width, image!.height], [1240, 1754])
  assert.equal(await drawOnThread(Buffer.from('hello'), 'text/plain', 1, signal), null)
})
