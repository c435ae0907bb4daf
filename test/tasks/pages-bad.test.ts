import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { closeVision, openPages, type PageResult } from '../../workers/children/documents/pages.ts'
import { documentBombs } from '../document-bombs.ts'
import {
  buildDeepPdf,
  buildHugePagePdf,
  buildRawPdf,
  buildStreamObject,
  buildTextPdf,
  buildTruncatedPdf,
} from '../pdfs.ts'

const strayErrors: unknown[] = []
const recordStray = (error: unknown) => void strayErrors.push(error)

before(() => process.on('unhandledRejection', recordStray))

after(async () => {
  await closeVision()
  process.off('unhandledRejection', recordStray)
  assert.deepEqual(strayErrors, [])
})

async function readAll(bytes: Uint8Array, mediaType = 'application/pdf'): Promise<PageResult[]> {
  const reader = await openPages(bytes, mediaType, { ocrMode: 'local' })
  const pages: PageResult[] = []
  for (let n = 1; n <= reader.pageCount; n++) pages.push(await reader.read(n))
  await reader.close()
  return pages
}

/**
 * Asserts that the document has one unread page without text and image. The reason must be a sentence, not an
 * exception.
 */
async function assertUnread(bytes: Uint8Array, detail: RegExp, mediaType?: string): Promise<void> {
  const pages = await readAll(bytes, mediaType)
  assert.equal(pages.length, 1)
  const { detail: reason, ...rest } = pages[0]!
  assert.deepEqual(rest, { status: 'unread', method: 'none', model: null, text: '', image: null })
  assert.match(reason!, detail)
  assert.doesNotMatch(reason!, /error|exception|undefined|stack/i)
}

const DAMAGED_MESSAGE = /^The document is damaged or is not a PDF$/

test('files that are no PDF', async () => {
  await assertUnread(new Uint8Array(), DAMAGED_MESSAGE)
  await assertUnread(Buffer.from('hello'), DAMAGED_MESSAGE)
  await assertUnread(Buffer.from('%PDF-1.7\n%%EOF'), DAMAGED_MESSAGE)
  await assertUnread(Buffer.alloc(1_000_000, '%PDF-1.4 1 0 obj << '), DAMAGED_MESSAGE)
  await assertUnread(buildRawPdf(['<< /Type /Catalog >>']), DAMAGED_MESSAGE)
  await assertUnread(
    buildRawPdf(['<< /Type /Catalog /Pages 2 0 R >>', '<< /Type /Pages /Kids [] /Count 0 >>']),
    /./,
  )
})

test('unsupported types', async () => {
  await assertUnread(
    Buffer.from('PK'),
    /^Archives \(\.zip\) cannot be read; readable are PDF/,
    'application/zip',
  )
})

test('truncated documents', async () => {
  for (const share of [0.01, 0.3, 0.5, 0.9])
    await assertUnread(await buildTruncatedPdf(share), DAMAGED_MESSAGE)
})

test('a broken cross-reference table is repaired', async () => {
  const bytes = Buffer.from(await buildTextPdf(3))
  bytes.fill('\n', bytes.indexOf('xref\n'), bytes.indexOf('trailer'))
  const pages = await readAll(new Uint8Array(bytes))
  assert.deepEqual(
    pages.map((page) => page.text.slice(0, 11)),
    ['Page 1 of 3', 'Page 2 of 3', 'Page 3 of 3'],
  )
})

test('a damaged page does not affect the others', async () => {
  const bytes = Buffer.from(await buildTextPdf(3))
  const second = bytes.indexOf('6 0 obj')
  bytes.fill('x', second, bytes.indexOf('7 0 obj'))
  const pages = await readAll(new Uint8Array(bytes))
  assert.deepEqual(
    pages.map((page) => page.status),
    ['read', 'unread', 'read'],
  )
  assert.equal(pages[1]!.detail, 'The page is damaged')
})

test('a page with lost content is not read as blank', async () => {
  const bytes = Buffer.from(await buildTextPdf(2))
  bytes.fill('x', bytes.indexOf('7 0 obj'), bytes.indexOf('8 0 obj'))
  const [first, second] = await readAll(new Uint8Array(bytes))
  assert.equal(first!.status, 'read')
  assert.equal(second!.status, 'unread')
})

test('a false page count', async () => {
  const page = '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] >>'
  const pdfWithCount = (count: string) =>
    buildRawPdf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      `<< /Type /Pages /Kids [3 0 R] /Count ${count} >>`,
      page,
    ])
  for (const count of ['1000000000', '-5', '0', '(x)'])
    assert.equal((await readAll(pdfWithCount(count))).length, 1)
})

test('a cyclic page tree', async () => {
  const tree = '<< /Type /Pages /Kids [2 0 R] /Count 1 >>'
  const pages = await readAll(buildRawPdf(['<< /Type /Catalog /Pages 2 0 R >>', tree]))
  assert.equal(pages[0]!.status, 'unread')
})

test('deeply nested objects', async () => {
  await assertUnread(buildDeepPdf('arrays'), DAMAGED_MESSAGE)
  assert.equal((await readAll(buildDeepPdf('content'))).length, 1)
  assert.equal((await readAll(buildDeepPdf('tree', 100_000))).length, 1)
})

test('a page of 35 metres is not read by OCR, but its words are read', async () => {
  const before = process.memoryUsage().rss
  const [unread] = await readAll(await buildHugePagePdf())
  assert.deepEqual(
    [unread!.status, unread!.detail],
    ['unread', 'The page is too large for OCR and has no text layer'],
  )
  const [page] = await readAll(await buildHugePagePdf('Words on a huge page'))
  assert.deepEqual(
    [page!.status, page!.text, page!.image],
    ['read', 'Words on a huge page', { png: null, width: 6318, height: 6318 }],
  )
  assert.ok(process.memoryUsage().rss - before < 200e6)
})

test('a large page is drawn smaller, within 40 megapixels', async () => {
  const poster = buildRawPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9000 4500] /Contents 4 0 R >>',
    buildStreamObject('0 0 9000 4500 re f'),
  ])
  const reader = await openPages(poster, 'application/pdf', { ocrMode: 'none' })
  const { image } = await reader.read(1)
  assert.ok(image!.width * image!.height <= 40_000_000 && image!.width * image!.height > 39_000_000)
  assert.ok(Math.abs(image!.width / image!.height - 2) < 0.001)
  await reader.close()
})

test('images that are broken, false or bombs', async () => {
  const png = Buffer.from('89504e470d0a1a0a0000000d494844520000ffff0000ffff08060000000000000000', 'hex')
  await assertUnread(png, /^The image is damaged$/, 'image/png')
  const bomb = documentBombs.find(({ name }) => name === 'a picture of 4 thousand million pixels')!.make()
  await assertUnread(bomb, /^The image is too large to be decoded \(65535 x 65535 pixels\)$/, 'image/png')
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"></svg>')
  for (const type of ['image/png', 'image/jpeg', 'image/webp', 'image/gif', 'image/tiff']) {
    await assertUnread(new Uint8Array(), /^The image is damaged$/, type)
    await assertUnread(svg, /^The image is damaged$/, type)
  }
})
