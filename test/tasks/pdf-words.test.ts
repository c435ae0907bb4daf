import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPages } from '../../workers/children/documents/pages.ts'
import { buildRawPdf, buildStreamObject } from '../pdfs.ts'

/** Tests the places of words, which marks of a search cover on the image of a page. */

const FONT = '/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>'

/** Finds the words of a page of 400 x 200 points, whose text begins at 100, 100. */
async function findWords(text: string, more = '') {
  const bytes = buildRawPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] ${more} /Contents 4 0 R /Resources << ${FONT} >> >>`,
    buildStreamObject(`BT /F1 20 Tf 100 100 Td (${text}) Tj ET`),
  ])
  const pages = await openPages(bytes, 'application/pdf', { ocrMode: 'none' })
  try {
    return await pages.words(1)
  } finally {
    await pages.close()
  }
}

const isNear = (actual: number, expected: number): void =>
  assert.ok(Math.abs(actual - expected) < 0.02, `${actual} is not near ${expected}`)

test('words have their places on the page, as shares of its size from the left and top', async () => {
  const [first, second, ...others] = await findWords('a needle')
  assert.deepEqual([first!.text, second!.text, others], ['a', 'needle', []])
  isNear(first!.left, 0.25)
  isNear(second!.left, first!.left + first!.width + 0.014)
  assert.ok(first!.top < 0.5 && first!.top > 0.35, 'the text stands on the middle of the page')
  assert.ok(first!.top + first!.height >= 0.5)
  isNear(second!.width, 0.153)
})

test('a turned page and a cropped one place words as they are displayed', async () => {
  const [turned] = await findWords('needle', '/Rotate 90')
  isNear(turned!.top, 0.25)
  assert.ok(turned!.height * 400 > turned!.width * 200, 'the word runs down')
  const [cropped] = await findWords('needle', '/CropBox [100 0 400 200]')
  isNear(cropped!.left, 0)
})

test('a page without a text layer has no words', async () => {
  assert.deepEqual(await findWords(''), [])
  const pages = await openPages(Buffer.from('plain'), 'text/plain', { ocrMode: 'none' })
  assert.deepEqual(await pages.words(1), [])
  await pages.close()
})
