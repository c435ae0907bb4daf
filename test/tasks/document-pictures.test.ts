import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ZIP_TYPES } from '../../tasks/documents/media.ts'
import { closeVision, openPages, type PageResult } from '../../workers/children/documents/pages.ts'
import type { OpenOptions } from '../../workers/children/work.ts'
import { buildRawPdf, buildStreamObject } from '../pdfs.ts'
import { useRecordedOutput } from '../recognized.ts'
import { DEPTH } from '../runs.ts'
import { drawSign } from '../sign.ts'
import { createZip } from '../zip.ts'

if (DEPTH === 'quick') useRecordedOutput()
after(closeVision)

const LOCAL: OpenOptions = { ocrMode: 'local' }

async function readAll(bytes: Uint8Array, mediaType: string, options = LOCAL): Promise<PageResult[]> {
  const reader = await openPages(bytes, mediaType, options)
  const pages: PageResult[] = []
  for (let n = 1; n <= reader.pageCount; n++)
    pages.push((await reader.readIfFast(n)) ?? (await reader.read(n)))
  await reader.close()
  return pages
}

const readTexts = async (...args: Parameters<typeof readAll>): Promise<string[]> =>
  (await readAll(...args)).map(({ text }) => text)

const sign = drawSign('Harbour office, room 12')
const FONT = '/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>'

/** Builds a PDF with the same picture on each page. `contents` are the content streams; `/Im` is the picture. */
function createPdf(contents: readonly string[], page = ''): Uint8Array {
  const first = 4
  return buildRawPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${contents.map((_, i) => `${first + 2 * i} 0 R`).join(' ')}] /Count ${contents.length} >>`,
    buildStreamObject(
      sign.toBuffer('image/jpeg', 95),
      '/Type /XObject /Subtype /Image /Width 900 /Height 200 /BitsPerComponent 8 /ColorSpace /DeviceRGB /Filter /DCTDecode',
    ),
    ...contents.flatMap((content, i) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] ${page} /Contents ${first + 2 * i + 1} 0 R /Resources << ${FONT} /XObject << /Im 3 0 R >> >> >>`,
      buildStreamObject(content),
    ]),
  ])
}

const WORDS = 'Dear reader, the sign below shows the way to the office.'
const TEXT = `BT /F1 12 Tf 50 700 Td (${WORDS}) Tj ET`
const PICTURE = 'q 432 0 0 96 50 400 cm /Im Do Q'

test('a picture below the text of a PDF page is read behind it', async () => {
  const [page] = await readAll(createPdf([`${TEXT} ${PICTURE}`]), 'application/pdf')
  assert.equal(page!.text, `${WORDS}\n\nHarbour office, room 12`)
  assert.deepEqual([page!.status, page!.method, page!.model], ['read', 'text_layer', 'tesseract/eng'])
})

test('a picture on a rotated page is found', async () => {
  const content = `q 0 1 -1 0 600 0 cm ${TEXT} Q q 0 432 -96 0 300 50 cm /Im Do Q`
  const [text] = await readTexts(createPdf([content], '/Rotate 90'), 'application/pdf')
  assert.match(text!, /Harbour office, room 12$/)
})

test('a picture that other pages repeat is read once', async () => {
  const texts = await readTexts(createPdf(Array(3).fill(`${TEXT} ${PICTURE}`)), 'application/pdf')
  assert.deepEqual(
    texts.map((text) => text.includes('Harbour')),
    [true, false, false],
  )
})

test('an icon, a picture behind text and a disabled setting leave the text layer alone', async () => {
  const behind = 'BT /F1 12 Tf 60 440 Td (Words over the picture) Tj ET'
  for (const [content, options] of [
    [`${TEXT} q 80 0 0 20 50 400 cm /Im Do Q`, LOCAL],
    [`${TEXT} ${PICTURE} ${behind}`, LOCAL],
    [`${TEXT} ${PICTURE}`, { ...LOCAL, withPictures: false }],
    [`${TEXT} ${PICTURE}`, { ocrMode: 'none' }],
  ] as const) {
    const [page] = await readAll(createPdf([content]), 'application/pdf', options)
    assert.deepEqual([page!.model, page!.text.includes('Harbour')], [null, false])
  }
})

const OFFICE = 'http://schemas.openxmlformats.org'
const createDocx = (text: string, files: Record<string, Uint8Array>): Uint8Array =>
  createZip(
    Object.entries({
      '_rels/.rels': `<Relationships xmlns="${OFFICE}/package/2006/relationships"><Relationship Id="a" Type="${OFFICE}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`,
      'word/document.xml': `<w:document xmlns:w="${OFFICE}/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>${text}</w:t></w:r></w:p></w:body></w:document>`,
      ...files,
    }),
  )

const png = sign.toBuffer('image/png')
const icon = drawSign('Harbour', 20, 20).toBuffer('image/png')

test('pictures in a docx are read, repeated ones once, thumbnails and icons not', async () => {
  const files = {
    'docProps/thumbnail.png': drawSign('Another sign').toBuffer('image/png'),
    'word/media/image1.png': png,
    'word/media/image2.png': png,
    'word/media/image3.png': icon,
  }
  const [page] = await readAll(createDocx('Dear reader', files), ZIP_TYPES.docx!)
  assert.deepEqual([page!.method, page!.text], ['text_layer', 'Dear reader\n\nHarbour office, room 12'])
})

test('a docx of pictures only is read by OCR, or says that it has only pictures', async () => {
  const [page] = await readAll(createDocx('', { 'word/media/image1.png': png }), ZIP_TYPES.docx!)
  assert.deepEqual(
    [page!.status, page!.method, page!.model, page!.text, page!.detail],
    ['read', 'vision', 'tesseract/eng', 'Harbour office, room 12', null],
  )
  const [wordless] = await readAll(createDocx('', { 'word/media/image1.png': icon }), ZIP_TYPES.docx!)
  assert.deepEqual(
    [wordless!.status, wordless!.detail],
    ['read', 'The page has only pictures, and no words were found in them'],
  )
  const [empty] = await readAll(createDocx('', {}), ZIP_TYPES.docx!)
  assert.deepEqual([empty!.status, empty!.detail], ['read', 'The page is blank'])
})

const other = drawSign('Quay closed').toBuffer('image/png')
const relations = (...all: readonly (readonly [id: string, type: string, target: string])[]): string =>
  `<Relationships>${all.map(([id, type, target]) => `<Relationship Id="${id}" Type="${OFFICE}/officeDocument/2006/relationships/${type}" Target="${target}"/>`).join('')}</Relationships>`

test('pictures of a presentation are read on the slide that refers to them', async () => {
  const slide = (text: string): string => `<p:sld><a:p><a:r><a:t>${text}</a:t></a:r></a:p></p:sld>`
  const pptx = createZip(
    Object.entries({
      '_rels/.rels': relations(['a', 'officeDocument', 'ppt/p.xml']),
      'ppt/p.xml': `<p:presentation xmlns:r="${OFFICE}/officeDocument/2006/relationships"><p:sldId r:id="b"/><p:sldId r:id="c"/><p:sldId r:id="d"/></p:presentation>`,
      'ppt/_rels/p.xml.rels': relations(
        ['b', 'slide', 's1.xml'],
        ['c', 'slide', 's2.xml'],
        ['d', 'slide', 's3.xml'],
      ),
      'ppt/s1.xml': slide('One'),
      'ppt/s2.xml': slide(''),
      'ppt/s3.xml': slide('Three'),
      'ppt/_rels/s1.xml.rels': relations(['e', 'image', 'media/Image2.png']),
      'ppt/_rels/s2.xml.rels': relations(['e', 'image', 'media/image1.png']),
      'ppt/_rels/s3.xml.rels': relations(['e', 'image', 'media/image1.png']),
      'ppt/media/image1.png': png,
      'ppt/media/image2.png': other,
    }),
  )
  assert.deepEqual(await readTexts(pptx, ZIP_TYPES.pptx!), [
    'One\n\nQuay closed',
    'Harbour office, room 12',
    'Three',
  ])
})

test('pictures of an OpenDocument presentation are read on their slide, those of a sheet on the sheet', async () => {
  const page = (text: string, picture: string): string =>
    `<d:page><d:frame><d:image l:href="${picture}"/></d:frame><t:p>${text}</t:p></d:page>`
  const odp = createZip([
    ['mimetype', ZIP_TYPES.odp!],
    [
      'content.xml',
      `<o xmlns:l="http://www.w3.org/1999/xlink">${page('', 'Pictures/1.png')}${page('Two', './Pictures/2.png')}${page('Three', '')}</o>`,
    ],
    ['Pictures/1.png', other],
    ['Pictures/2.png', png],
  ])
  assert.deepEqual(await readTexts(odp, ZIP_TYPES.odp!), [
    'Quay closed',
    'Two\n\nHarbour office, room 12',
    'Three',
  ])
  const xlsx = createZip(
    Object.entries({
      '_rels/.rels': relations(['a', 'officeDocument', 'x/w.xml']),
      'x/w.xml': `<workbook xmlns:r="${OFFICE}/officeDocument/2006/relationships"><sheet name="A" r:id="b"/><sheet name="B" r:id="c"/></workbook>`,
      'x/_rels/w.xml.rels': relations(['b', 'worksheet', 's1.xml'], ['c', 'worksheet', 's2.xml']),
      'x/s1.xml': '<worksheet/>',
      'x/s2.xml': '<worksheet/>',
      'x/_rels/s1.xml.rels': relations(['d', 'drawing', 'd.xml']),
      'x/d.xml': '<wsDr/>',
      'x/_rels/d.xml.rels': relations(['e', 'image', 'i.png']),
      'x/i.png': png,
    }),
  )
  assert.deepEqual(await readTexts(xlsx, ZIP_TYPES.xlsx!), ['A\n\nHarbour office, room 12', 'B'])
})

test('a damaged picture leaves the text of its document', async () => {
  const files = { 'word/media/image1.png': png.subarray(0, 40) }
  assert.deepEqual(await readTexts(createDocx('Dear reader', files), ZIP_TYPES.docx!), ['Dear reader'])
})
