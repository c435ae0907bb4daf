import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { closeVision, openPages } from '../../workers/children/documents/pages.ts'
import { isPoorText } from '../../workers/children/documents/texts.ts'
import { buildRawPdf, buildStreamObject, createPageLines, renderScan } from '../pdfs.ts'
import { useRecordedOutput } from '../recognized.ts'
import { DEPTH } from '../runs.ts'

if (DEPTH === 'quick') useRecordedOutput()
after(closeVision)

const lines = createPageLines(1, 1, { sentences: 6 })

/** Reads a page with a picture of lines, and text over or under the picture. */
async function read(shown: readonly string[], text: string) {
  const { bytes, width, height } = renderScan(shown)
  const pdf = buildRawPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /XObject << /Im 5 0 R >>' +
      ' /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>',
    buildStreamObject(`q 595 0 0 842 0 0 cm /Im Do Q BT /F1 11 Tf 16 TL 60 60 Td ${text} ET`),
    buildStreamObject(
      bytes,
      `/Type /XObject /Subtype /Image /Width ${width} /Height ${height} /BitsPerComponent 8 /ColorSpace /DeviceRGB` +
        ' /Filter /DCTDecode',
    ),
  ])
  const reader = await openPages(pdf, 'application/pdf', { ocrMode: 'local' })
  return reader.read(1).finally(() => reader.close())
}

const createHiddenText = (written: readonly string[]): string =>
  `3 Tr 0 700 Td ${written.map((line) => `(${line}) Tj T*`).join(' ')}`

test('a stamp on a scan does not hide the scan', async () => {
  const page = await read(lines, '(Scanned by CamScanner p. 1) Tj')
  assert.equal(page.method, 'vision')
  for (const part of [lines[1]!, lines.at(-1)!, 'CamScanner']) assert.ok(page.text.includes(part), page.text)
})

test('a poor hidden layer does not hide the scan, but a good one is used', async () => {
  const poor = await read(
    lines,
    createHiddenText(lines.map((line) => line.replace(/[oa](?=[a-z])/g, '0').replace(/e(?=[a-z])/g, '8'))),
  )
  assert.equal(poor.method, 'vision')
  assert.ok(poor.text.includes(lines[1]!), poor.text)
  const good = await read(lines, createHiddenText(lines))
  assert.deepEqual([good.method, good.text.split('\n').filter(Boolean)], ['text_layer', lines])
})

test('the title over a picture without words is used', async () => {
  const page = await read([], '(A title over a picture) Tj')
  assert.deepEqual([page.method, page.text], ['text_layer', 'A title over a picture'])
})

test('a text is poor when many of its words have digits between letters', () => {
  assert.equal(isPoorText('lnv0ice nurn8er of the h4rbour'), true)
  assert.equal(
    isPoorText('Invoice A4B6 of the 3rd and 4th b2b meeting, room x86a, with much more text around these'),
    false,
  )
  assert.equal(isPoorText(lines.join(' ')), false)
})
