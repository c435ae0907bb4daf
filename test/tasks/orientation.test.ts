import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadImage } from '@napi-rs/canvas'
import type { GreyImage } from '../../workers/children/images/grey.ts'
import { canvasToGrey, drawScaled } from '../../workers/children/images/images.ts'
import { findTextPart, recognizeUpright, rotateImage } from '../../workers/children/images/orientation.ts'
import { createPageLines, renderScan } from '../pdfs.ts'

const TEXT = 'a page of words that could be anything'
const WORD = { text: 'page', left: 0.1, top: 0.2, width: 0.3, height: 0.05 }
const page = canvasToGrey(
  await drawScaled(
    await loadImage(Buffer.from(renderScan(createPageLines(1, 1, { sentences: 20 }), 200).bytes)),
    1,
  ),
)

/** Returns a reader that reads no text and counts the pixels that it gets. Its confidence comes from `confidenceOf`. */
function createReader(confidenceOf: (grey: GreyImage) => number) {
  const counted = { pixels: 0 }
  const read = async (grey: GreyImage) => {
    counted.pixels += grey.data.length
    return { text: TEXT, words: [WORD], confidence: confidenceOf(grey), wordHeight: 20 }
  }
  return { read, counted }
}

test('the sample with the most letters is a tenth of a page', () => {
  const part = findTextPart(page)
  assert.deepEqual([part.width, part.height], [800, 800])
  const ink = part.data.filter((level) => level < 128).length / part.data.length
  assert.ok(ink > 0.02, `${ink}`)
  const small = { data: new Uint8Array(6), width: 3, height: 2 }
  assert.equal(findTextPart(small), small)
})

test('a page that is unreadable either way is read once, and its sample four times', async () => {
  const { read, counted } = createReader(() => 40)
  assert.deepEqual(await recognizeUpright(page, read, Number.POSITIVE_INFINITY), {
    text: TEXT,
    words: [WORD],
    confidence: 40,
    wordHeight: 20,
  })
  assert.equal(counted.pixels, page.data.length + 4 * 800 * 800)
})

test('a readable page is read once', async () => {
  const { read, counted } = createReader(() => 75)
  await recognizeUpright(page, read, Number.POSITIVE_INFINITY)
  assert.equal(counted.pixels, page.data.length)
})

test('a page whose sample reads best upside down is read that way', async () => {
  const parts = [0, 1, 2, 3].map((quarters) => rotateImage(findTextPart(page), quarters).data)
  const { read, counted } = createReader(({ data }) => {
    const quarters = parts.findIndex((part) => Buffer.compare(part, data) === 0)
    if (quarters !== -1) return quarters === 2 ? 85 : 40
    return Buffer.compare(data, page.data) === 0 ? 41 : 80
  })
  const { confidence, words } = await recognizeUpright(page, read, Number.POSITIVE_INFINITY)
  assert.equal(confidence, 80)
  assert.deepEqual(words, [{ text: 'page', left: 0.6, top: 0.75, width: 0.3, height: 0.05 }])
  assert.equal(counted.pixels, 2 * page.data.length + 2 * 800 * 800)
})

test('words of a sideways page have their places on the page', async () => {
  for (const [sideways, place] of [
    [1, { left: 0.75, top: 0.1, width: 0.05, height: 0.3 }],
    [3, { left: 0.2, top: 0.6, width: 0.05, height: 0.3 }],
  ] as const) {
    const turned = rotateImage(page, sideways)
    const { read } = createReader(({ data }) => (Buffer.compare(data, page.data) === 0 ? 80 : 30))
    // Lines from top to bottom are first read as if the page had been turned to the left.
    const parts = [0, 1, 2, 3].map((quarters) => rotateImage(findTextPart(turned), quarters).data)
    const readParts: typeof read = async (grey) => {
      const quarters = parts.findIndex((part) => Buffer.compare(part, grey.data) === 0)
      const seen = await read(grey)
      return quarters === -1 ? seen : { ...seen, confidence: quarters === 4 - sideways ? 85 : 30 }
    }
    const { words } = await recognizeUpright(turned, readParts, Number.POSITIVE_INFINITY)
    assert.deepEqual(words, [{ text: 'page', ...place }])
  }
})
