import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { after, test } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { loadImage } from '@napi-rs/canvas'
import { closeVision, openPages } from '../../workers/children/documents/pages.ts'
import { canvasToGrey, drawScaled, Unreadable } from '../../workers/children/images/images.ts'
import { recognize } from '../../workers/children/ocr/vision.ts'
import { buildScanPdf, createPageLines, renderScan } from '../pdfs.ts'
import { drawSign } from '../sign.ts'

/** Tests the OCR engine itself. Tests of the code around it use its recorded output (`recognized.ts`). */

after(closeVision)

const threads: Worker[] = []
subscribe('worker_threads', (message) => threads.push((message as { worker: Worker }).worker))

const words = (text: string) => text.split(/\s+/).filter(Boolean)

const drawWords = (text: string) => canvasToGrey(drawSign(text, 600))

/** Page that the engine reads for seconds. */
const densePage = canvasToGrey(
  await drawScaled(
    await loadImage(Buffer.from(renderScan(createPageLines(1, 1, { sentences: 30 }), 200).bytes)),
    1,
  ),
)

test('one engine serves a thread until closeVision or its 100th page, and then a new one starts', async () => {
  await closeVision()
  const before = threads.length
  const grey = drawWords('Hello there')
  assert.match((await recognize(grey, 'eng')).text, /Hello there/)
  assert.match((await recognize(grey, 'eng')).text, /Hello there/)
  assert.equal(threads.length, before + 1)
  await closeVision()
  await closeVision()
  assert.match((await recognize(grey, 'eng')).text, /Hello there/)
  assert.equal(threads.length, before + 2)
  const small = canvasToGrey(drawSign('', 20, 20))
  for (let pages = 2; pages <= 100; pages++) await recognize(small, 'eng')
  assert.equal(threads.length, before + 2)
  await recognize(small, 'eng')
  assert.equal(threads.length, before + 3)
})

test('the model reads at least 95 % of the words of a scan', async () => {
  const reader = await openPages(await buildScanPdf(2, { sentences: 4 }), 'application/pdf', {
    ocrMode: 'local',
  })
  for (let n = 1; n <= 2; n++) {
    const { status, method, model, detail, text, image } = await reader.read(n)
    assert.deepEqual([status, method, model, detail], ['read', 'vision', 'tesseract/eng', null])
    const got = new Set(words(text))
    const expected = words(createPageLines(n, 2, { sentences: 4 }).join(' '))
    const found = expected.filter((word) => got.has(word)).length
    assert.ok(found / expected.length >= 0.95, `${found} of ${expected.length} words`)
    assert.deepEqual([image!.width, image!.height], [1240, 1754])
  }
  await reader.close()
})

test('a page is read in the requested languages', async () => {
  const line = 'Die Größe der Brücke überrascht die Gäste'
  const picture = drawSign(line, 1200).toBuffer('image/png')
  const read = async (languages: string) => {
    const reader = await openPages(picture.slice(), 'image/png', { ocrMode: 'local', languages })
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

test('an engine that takes too much CPU time is replaced', async () => {
  await recognize(drawWords('Warm'), 'eng')
  const late = recognize(densePage, 'eng', 1)
  await assert.rejects(late, new Unreadable('Reading the page exceeded its time limit'))
  assert.match((await recognize(drawWords('Still alive'), 'eng')).text, /Still alive/)
})

test('an engine that dies or throws fails one page, and never the process', async () => {
  const deaths: ((thread: Worker) => unknown)[] = [
    (thread) => thread.terminate(),
    (thread) => thread.emit('error', new Error('out of memory')),
  ]
  for (const kill of deaths) {
    await recognize(drawWords('Warm'), 'eng')
    const reading = recognize(densePage, 'eng')
    setImmediate(() => kill(threads.at(-1)!))
    await assert.rejects(reading, new Unreadable('The vision provider failed to read the page'))
    assert.match((await recognize(drawWords('Still alive'), 'eng')).text, /Still alive/)
  }
})

test("an engine that dies at its start is our error, not the page's", async () => {
  const die = (message: unknown) => {
    const { worker } = message as { worker: Worker }
    setImmediate(() => worker.emit('error', new Error('no memory')))
  }
  await closeVision()
  const grey = drawWords('Hello')
  subscribe('worker_threads', die)
  try {
    await assert.rejects(recognize(grey, 'eng'), /^Error: The vision engine failed to start$/)
  } finally {
    unsubscribe('worker_threads', die)
  }
  assert.match((await recognize(grey, 'eng')).text, /Hello/)
})
