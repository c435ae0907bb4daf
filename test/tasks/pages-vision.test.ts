import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { after, test } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { loadImage } from '@napi-rs/canvas'
import { scaled, toGrey, Unreadable } from '../../workers/children/documents/images.ts'
import { closeVision, openPages } from '../../workers/children/documents/pages.ts'
import { recognize } from '../../workers/children/documents/vision.ts'
import { pageLines, scanImage, scanPdf } from '../pdfs.ts'
import { sign } from '../sign.ts'

after(closeVision)

const threads: Worker[] = []
subscribe('worker_threads', (message) => threads.push((message as { worker: Worker }).worker))

const words = (text: string) => text.split(/\s+/).filter(Boolean)

const shown = (text: string) => toGrey(sign(text, 600))

/** Takes a second to read. */
async function densePage() {
  const { bytes } = scanImage(pageLines(1, 1, { sentences: 30 }), 200)
  return toGrey(await scaled(await loadImage(Buffer.from(bytes)), 1))
}

test('one engine serves a thread, and a fresh one follows closeVision', async () => {
  await closeVision()
  const before = threads.length
  const grey = shown('Hello there')
  assert.match((await recognize(grey, 'eng')).text, /Hello there/)
  assert.match((await recognize(grey, 'eng')).text, /Hello there/)
  assert.equal(threads.length, before + 1)
  await closeVision()
  await closeVision()
  assert.match((await recognize(grey, 'eng')).text, /Hello there/)
  assert.equal(threads.length, before + 2)
})

test('the model reads at least 95 % of the words of a scan', async () => {
  const reader = await openPages(await scanPdf(2, { sentences: 4 }), 'application/pdf', {
    sight: 'local',
  })
  for (let n = 1; n <= 2; n++) {
    const { status, method, model, detail, text, image } = await reader.read(n)
    assert.deepEqual([status, method, model, detail], ['read', 'vision', 'tesseract/eng', null])
    const got = new Set(words(text))
    const expected = words(pageLines(n, 2, { sentences: 4 }).join(' '))
    const found = expected.filter((word) => got.has(word)).length
    assert.ok(found / expected.length >= 0.95, `${found} of ${expected.length} words`)
    assert.deepEqual([image!.width, image!.height], [1240, 1754])
  }
  await reader.close()
})

test('a page is read in the languages asked for, by an engine for them', async () => {
  const line = 'Die Größe der Brücke überrascht die Gäste'
  const pdf = await scanPdf(1, { line: () => line, sentences: 0 })
  const read = async (languages: string) => {
    const reader = await openPages(pdf.slice(), 'application/pdf', { sight: 'local', languages })
    return reader.read(1).finally(() => reader.close())
  }
  const before = threads.length
  for (const languages of ['deu', 'deu+eng']) {
    const { text, model } = await read(languages)
    assert.ok(text.includes(line), text)
    assert.equal(model, `tesseract/${languages}`)
  }
  assert.doesNotMatch((await read('eng')).text, /Größe/)
  assert.equal(threads.length, before + 3)
})

test('nonsense from a page in another script is not its text', async () => {
  const greek = 'Μῆνιν ἄειδε θεὰ Πηληϊάδεω Ἀχιλῆος οὐλομένην ἣ μυρί Ἀχαιοῖς'
  const russian = 'Все счастливые семьи похожи друг на друга, каждая несчастлива'
  for (const [line, count, dpi] of [
    [greek, 5, 80],
    [russian, 3, 200],
  ] as const) {
    const all = line.split(' ')
    const lines = Array.from({ length: count }, (_, i) => [...all.slice(i), ...all.slice(0, i)].join(' '))
    const { bytes } = scanImage(lines, dpi)
    const reader = await openPages(bytes, 'image/jpeg', { sight: 'local' })
    const { status, text, detail } = await reader.read(1)
    await reader.close()
    assert.deepEqual([status, text], ['unread', ''])
    assert.match(detail!, /makes no sense \(confidence \d\d of 100\): it is too poor, or not in eng$/)
  }
})

test('an engine is replaced after 100 pages', async () => {
  await closeVision()
  const before = threads.length
  const small = toGrey(sign('Hi', 200))
  for (let i = 0; i < 101; i++) await recognize(small, 'eng')
  assert.equal(threads.length, before + 2)
})

test('an engine that takes too much CPU time is replaced', async () => {
  const grey = await densePage()
  await recognize(shown('Warm'), 'eng')
  const late = recognize(grey, 'eng', 1)
  await assert.rejects(late, new Unreadable('The page takes too long to be read'))
  assert.match((await recognize(shown('Still alive'), 'eng')).text, /Still alive/)
})

test('an engine that dies or throws costs one page and never the process', async () => {
  const grey = await densePage()
  const deaths: ((thread: Worker) => unknown)[] = [
    (thread) => thread.terminate(),
    (thread) => thread.emit('error', new Error('out of memory')),
  ]
  for (const kill of deaths) {
    await recognize(shown('Warm'), 'eng')
    const reading = recognize(grey, 'eng')
    setImmediate(() => kill(threads.at(-1)!))
    await assert.rejects(reading, new Unreadable('The page could not be read by the vision provider'))
    assert.match((await recognize(shown('Still alive'), 'eng')).text, /Still alive/)
  }
})

test('an engine that dies while it starts is an error of ours, not of the page', async () => {
  const die = (message: unknown) => {
    const { worker } = message as { worker: Worker }
    setImmediate(() => worker.emit('error', new Error('no memory')))
  }
  await closeVision()
  const grey = shown('Hello')
  subscribe('worker_threads', die)
  try {
    await assert.rejects(recognize(grey, 'eng'), /^Error: The vision engine did not start$/)
  } finally {
    unsubscribe('worker_threads', die)
  }
  assert.match((await recognize(grey, 'eng')).text, /Hello/)
})
