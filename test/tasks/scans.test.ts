import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createCanvas, loadImage } from '@napi-rs/canvas'
import { closeVision, openPages } from '../../workers/children/documents/pages.ts'
import { openTextLayer } from '../../workers/children/pdf/pdfium.ts'
import {
  buildBlankPdf,
  buildRawPdf,
  buildScanPdf,
  buildStreamObject,
  buildTextPdf,
  createPageLines,
  renderScan,
} from '../pdfs.ts'
import { useRecordedOutput } from '../recognized.ts'
import { DEPTH } from '../runs.ts'

if (DEPTH === 'quick') useRecordedOutput()
after(closeVision)

// Few words and pixels, because they determine how long OCR takes.
const lines = createPageLines(1, 1, { sentences: 3 })
const truth = lines.join(' ')
const page = await loadImage(Buffer.from(renderScan(lines, 300, 80).bytes))
/** Height of the part of the page that has text. */
const height = Math.round(page.height / 4)

/** Returns the share of correct characters: 1 minus the edit distance divided by the length of the true text. */
function measureAccuracy(text: string): number {
  const read = text.replace(/\s+/g, ' ').trim()
  let row = Array.from({ length: read.length + 1 }, (_, i) => i)
  for (const [i, letter] of [...truth].entries()) {
    const next = [i + 1]
    for (let j = 1; j <= read.length; j++)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (letter === read[j - 1] ? 0 : 1)))
    row = next
  }
  return 1 - row[read.length]! / truth.length
}

/** Draws a scan at 300 dpi, turned about its centre. */
function drawScan(degrees: number): { bytes: Uint8Array; width: number; height: number } {
  const aside = degrees % 180 === 90
  const canvas = createCanvas(aside ? height : page.width, aside ? page.width : height)
  const context = canvas.getContext('2d')
  context.fillStyle = '#fff'
  context.fillRect(0, 0, canvas.width, canvas.height)
  context.translate(canvas.width / 2, canvas.height / 2)
  context.rotate((degrees * Math.PI) / 180)
  context.drawImage(page, -page.width / 2, -height / 2)
  return { bytes: canvas.toBuffer('image/jpeg', 80), width: canvas.width, height: canvas.height }
}

async function read(bytes: Uint8Array, mediaType: string): Promise<string> {
  const reader = await openPages(bytes, mediaType, { ocrMode: 'local' })
  const page = await reader.read(1)
  await reader.close()
  assert.equal(page.method, 'vision')
  return page.text
}

for (const degrees of [0, 90, 180, 270, 1, -2]) {
  test(`OCR reads 97 % of the characters of a clean scan, turned by ${degrees} degrees`, async (t) => {
    const share = measureAccuracy(await read(drawScan(degrees).bytes, 'image/jpeg'))
    t.diagnostic(`${(100 * share).toFixed(2)} % of the characters`)
    assert.ok(share >= 0.97, `${share}`)
  })
}

test('a scan is read on a page that the PDF rotates back, or not', async () => {
  for (const [degrees, rotate] of [
    [90, 270],
    [270, 0],
  ] as const) {
    const { bytes, width, height } = drawScan(degrees)
    const [w, h] = [(width * 72) / 300, (height * 72) / 300]
    const pdf = buildRawPdf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${w} ${h}] /Rotate ${rotate} /Contents 4 0 R` +
        ' /Resources << /XObject << /Im 5 0 R >> >> >>',
      buildStreamObject(`${w} 0 0 ${h} 0 0 cm /Im Do`),
      buildStreamObject(
        bytes,
        `/Type /XObject /Subtype /Image /Width ${width} /Height ${height} /BitsPerComponent 8 /ColorSpace /DeviceRGB /Filter /DCTDecode`,
      ),
    ])
    assert.ok(measureAccuracy(await read(pdf, 'application/pdf')) >= 0.97)
  }
})

test('nonsense from a page in another script is not used as text', async () => {
  const greek = 'Μῆνιν ἄειδε θεὰ Πηληϊάδεω Ἀχιλῆος οὐλομένην ἣ μυρί Ἀχαιοῖς'
  const russian = 'Все счастливые семьи похожи друг на друга, каждая несчастлива'
  for (const [line, count, dpi] of [
    [greek, 5, 80],
    [russian, 3, 200],
  ] as const) {
    const all = line.split(' ')
    const lines = Array.from({ length: count }, (_, i) => [...all.slice(i), ...all.slice(0, i)].join(' '))
    const { bytes } = renderScan(lines, dpi)
    const reader = await openPages(bytes, 'image/jpeg', { ocrMode: 'local' })
    const { status, text, detail } = await reader.read(1)
    await reader.close()
    assert.deepEqual([status, text], ['unread', ''])
    assert.match(
      detail!,
      /^OCR confidence is too low \(\d\d of 100\): the image is poor, or its text is not in eng$/,
    )
  }
})

test('a page of pictures only is drawn in grey at the highest resolution', async () => {
  const page = async (pdf: Uint8Array) => (await openTextLayer(pdf))!.page(1)!
  const scanned = await page(await buildScanPdf(1, { sentences: 3 }))
  assert.equal(Math.round(scanned.scan()!.dpi), 200)
  const { data, width, height } = scanned.grey(827, 1169, false)!
  assert.deepEqual([data.length, width, height], [827 * 1169, 827, 1169])
  const dark = data.reduce((sum, level) => sum + (level < 128 ? 1 : 0), 0)
  assert.ok(dark > 1000 && dark < data.length / 50, `${dark}`)
  assert.equal(scanned.grey(50_000, 50_000, true), null)
  assert.equal((await page(await buildTextPdf(1))).scan(), null)
  assert.equal((await page(await buildBlankPdf())).scan(), null)
  assert.equal((await page(await createHugePicturePdf())).scan(), null)
})

/** Builds a page with a picture that claims more pixels than the limit. */
async function createHugePicturePdf(): Promise<Uint8Array> {
  return buildRawPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100 100] /Contents 4 0 R /Resources << /XObject << /Im 5 0 R >> >> >>',
    buildStreamObject('100 0 0 100 0 0 cm /Im Do'),
    buildStreamObject(
      '0',
      '/Type /XObject /Subtype /Image /Width 30000 /Height 30000 /BitsPerComponent 8 /ColorSpace /DeviceGray',
    ),
  ])
}
