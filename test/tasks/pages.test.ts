import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import { closeVision, openPages, type PageResult } from '../../workers/children/documents/pages.ts'
import {
  buildBlankPdf,
  buildEncryptedPdf,
  buildMixedPdf,
  buildRawPdf,
  buildStreamObject,
  buildTextPdf,
  createPageLines,
} from '../pdfs.ts'
import { useRecordedOutput } from '../recognized.ts'
import { DEPTH } from '../runs.ts'

if (DEPTH === 'quick') useRecordedOutput()
after(closeVision)

const createPagePdf = (content: string | Uint8Array, resources: string, ...more: (string | Uint8Array)[]) =>
  buildRawPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R /Resources << ${resources} >> >>`,
    buildStreamObject(content),
    ...more,
  ])

async function readAll(
  bytes: Uint8Array,
  mediaType = 'application/pdf',
  ocrMode: 'local' | 'none' = 'none',
): Promise<PageResult[]> {
  const reader = await openPages(bytes, mediaType, { ocrMode: ocrMode })
  try {
    const pages: PageResult[] = []
    for (let n = 1; n <= reader.pageCount; n++) pages.push(await reader.read(n))
    return pages
  } finally {
    await reader.close()
  }
}

const readPage = async (...args: Parameters<typeof readAll>) => (await readAll(...args))[0]!

test('the text layer of every page is read line by line, with a page image', async () => {
  const pages = await readAll(await buildTextPdf(3))
  assert.equal(pages.length, 3)
  for (const [i, page] of pages.entries()) {
    assert.equal(page.text, createPageLines(i + 1, 3).join('\n'))
    assert.deepEqual([page.status, page.method, page.model, page.detail], ['read', 'text_layer', null, null])
  }
})

const drawPage = async (bytes: Uint8Array) => {
  const reader = await openPages(bytes, 'application/pdf', { ocrMode: 'none' })
  const image = await reader.draw(1)
  await reader.close()
  return image!
}

test('a page with a text layer gets a picture only when drawn: a PNG at 150 dpi that owns its bytes', async () => {
  const { image: undrawn } = await readPage(await buildTextPdf(1))
  const image = await drawPage(await buildTextPdf(1))
  assert.deepEqual(undrawn, { png: null, width: image.width, height: image.height })
  assert.ok(Math.abs(image.width - 1240) <= 1 && Math.abs(image.height - 1754) <= 1)
  const header = Buffer.from(image.png.buffer, 0, 24)
  assert.equal(header.toString('latin1', 1, 4), 'PNG')
  assert.deepEqual([header.readUInt32BE(16), header.readUInt32BE(20)], [image.width, image.height])
  assert.equal(image.png.byteLength, image.png.buffer.byteLength)
})

test('base-14 text is drawn although the font is not embedded', async () => {
  const full = await drawPage(await buildTextPdf(1, { sentences: 30 }))
  const blank = await drawPage(await buildBlankPdf())
  assert.ok(full.png.length > 3 * blank.png.length)
})

test('Chinese and Japanese in predefined encodings are decoded by their CMaps', async () => {
  const font = (name: string, ordering: string, base: string) =>
    `<< /Type /Font /Subtype /Type0 /BaseFont /${base} /Encoding /${name} /DescendantFonts [<< /Type /Font` +
    ` /Subtype /CIDFontType0 /BaseFont /${base} /CIDSystemInfo << /Registry (Adobe) /Ordering (${ordering})` +
    ' /Supplement 2 >> /DW 1000 >>] >>'
  const text = 'BT /C 20 Tf 20 150 Td <4e2d65876587672c> Tj ET BT /J 20 Tf 20 100 Td <93fa967b8cea> Tj ET'
  const fonts = `/Font << /C ${font('UniGB-UCS2-H', 'GB1', 'STSong-Light')} /J ${font('90ms-RKSJ-H', 'Japan1', 'Ryumin-Light')} >>`
  assert.match((await readPage(createPagePdf(text, fonts))).text, /^中文文本\n+日本語$/)
})

test('decoders that pdfjs loads as WebAssembly are found on disk', async () => {
  // CCITT group 4: a black first row of 64 pixels, 63 rows that repeat it, end of block
  const rows = `001001101010000001111${'0000110111'}${'11'.repeat(63)}000000000001000000000001`
  const bytes = rows.match(/.{1,8}/g)!.map((byte) => Number.parseInt(byte.padEnd(8, '0'), 2))
  const image = buildStreamObject(
    Uint8Array.from(bytes),
    '/Type /XObject /Subtype /Image /Width 64 /Height 64 /BitsPerComponent 1 /ColorSpace /DeviceGray' +
      ' /Filter /CCITTFaxDecode /DecodeParms << /K -1 /Columns 64 /Rows 64 >>',
  )
  const bytesOf = () => createPagePdf('100 0 0 100 50 50 cm /Im Do', '/XObject << /Im 5 0 R >>', image)
  const page = await readPage(bytesOf(), 'application/pdf', 'local')
  // The picture is a black square: not blank, but without words.
  assert.equal(page.detail, 'No words were found in the page image')
})

test('a scanned page without a vision provider is unread, with the reason and the image', async () => {
  const [first, second] = await readAll(await buildMixedPdf(2, [2]))
  assert.equal(first!.method, 'text_layer')
  assert.deepEqual([second!.status, second!.method, second!.text], ['unread', 'none', ''])
  assert.match(second!.detail!, /no text layer, and no vision provider/)
  assert.equal(second!.image!.width, 1240)
})

test('a blank page counts as read, but a page that lost its picture does not', async () => {
  const blank = await readPage(await buildBlankPdf(), 'application/pdf', 'local')
  assert.deepEqual([blank.status, blank.method, blank.model, blank.text], ['read', 'vision', null, ''])
  const picture = (size: number) =>
    createPagePdf(
      '200 0 0 200 0 0 cm /Im Do',
      '/XObject << /Im 5 0 R >>',
      buildStreamObject(
        'these bytes are no JPEG',
        `/Type /XObject /Subtype /Image /Width ${size} /Height ${size} /BitsPerComponent 8` +
          ' /ColorSpace /DeviceRGB /Filter /DCTDecode',
      ),
    )
  for (const size of [100, 50_000]) {
    const lost = await readPage(picture(size), 'application/pdf', 'local')
    assert.equal(lost.detail, 'The content of the page is damaged or too large to be drawn')
    assert.ok(lost.image)
  }
})

test('an encrypted document opens with an empty or the given password, and is drawn with it', async () => {
  assert.equal((await readPage(buildEncryptedPdf('', 'Open to all'))).text, 'Open to all')
  const modern = new Uint8Array(await readFile(new URL('../data/locked.pdf', import.meta.url)))
  for (const [make, password, text] of [
    [() => buildEncryptedPdf('secret'), 'secret', /^Only for those who know$/],
    [() => modern.slice(), 'Grün & weiß', /^Page 1 of 2/],
    [() => buildEncryptedPdf('', 'Open to all'), 'needless', /^Open to all$/],
  ] as const) {
    const reader = await openPages(make(), 'application/pdf', { ocrMode: 'none', password })
    assert.equal(reader.isLocked, false)
    assert.match((await reader.read(1)).text, text)
    assert.ok((await reader.draw(1))!.png.length > 1000)
    await reader.close()
  }
})

test('an encrypted document does not open with a wrong password', async () => {
  for (const withoutPdfium of [false, true]) {
    const options = { ocrMode: 'none', password: 'Secret', withoutPdfium } as const
    const reader = await openPages(buildEncryptedPdf('secret'), 'application/pdf', options)
    assert.deepEqual([reader.isLocked, reader.pageCount], [true, 1])
    const { status, detail } = await reader.read(1)
    assert.equal(status, 'unread')
    assert.equal(detail, 'The document is encrypted, and the password does not open it')
    await reader.close()
  }
  const locked = await readPage(buildEncryptedPdf('secret'))
  assert.deepEqual(locked, {
    status: 'unread',
    method: 'none',
    model: null,
    detail: 'The document is encrypted and needs a password',
    text: '',
    image: null,
  })
})

test('pages can be read in any order and again, but an invalid number throws', async () => {
  const reader = await openPages(await buildTextPdf(3), 'application/pdf', { ocrMode: 'none' })
  assert.match((await reader.read(3)).text, /^Page 3 of 3/)
  assert.match((await reader.read(1)).text, /^Page 1 of 3/)
  assert.match((await reader.read(3)).text, /^Page 3 of 3/)
  for (const wrong of [0, 4, 1.5, Number.NaN]) await assert.rejects(reader.read(wrong), RangeError)
  await reader.close()
})

test('text files: encodings, line ends, characters that PostgreSQL refuses', async () => {
  const read = async (bytes: Uint8Array, type = 'text/plain') => (await readPage(bytes, type)).text
  assert.equal(await read(Buffer.from('\ufeffGrüße\r\nzwei\rdrei\n')), 'Grüße\nzwei\ndrei\n')
  assert.equal(await read(Buffer.from('\ufeffnaïve 日本', 'utf16le')), 'naïve 日本')
  assert.equal(await read(Buffer.from('\ufeffnaïve', 'utf16le').swap16()), 'naïve')
  assert.equal(await read(Buffer.from([0x93, 0x47, 0x72, 0xfc, 0x94, 0x80])), '“Grü”€')
  assert.equal(await read(Buffer.from('a\0b')), 'ab')
  assert.equal(await read(Buffer.from('\ufeffa\ud800b', 'utf16le')), 'a\ufffdb')
  assert.equal(await read(Buffer.from('# Title'), 'text/markdown'), '# Title')
  const page = await readPage(Buffer.from(''), 'text/plain')
  assert.deepEqual([page.status, page.method, page.text, page.image], ['read', 'text_layer', '', null])
})

test('a very long text is cut, and the page says so', async () => {
  const page = await readPage(Buffer.from(`${'x'.repeat(1_999_999)}😀${'y'.repeat(9_000_000)}`), 'text/plain')
  assert.equal(page.status, 'read')
  assert.equal(page.text, 'x'.repeat(1_999_999))
  assert.equal(page.detail, 'Only the first 2000000 characters were kept')
})
