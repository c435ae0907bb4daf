import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { write } from '@e965/xlsx'
import { openPages } from '../../workers/children/documents/pages.ts'
import { Archive } from '../../workers/children/formats/archive.ts'
import { countBinaryCells, countXlsbCells } from '../../workers/children/formats/held-workbook.ts'
import { openLegacyWorkbook } from '../../workers/children/formats/legacy-sheets.ts'
import { readCompoundStreams } from '../../workers/children/formats/sheetjs.ts'
import { createDoc, createOffice, createPpt, createSheet, wordParagraph as p, wordPart } from '../office.ts'
import { buildRawPdf, buildStreamObject } from '../pdfs.ts'
import { createZip } from '../zip.ts'
import { readPages } from './office-help.ts'

/** Covers pages whose reader finds no fault, but loses nearly all of the text that the file holds. */

const WORDS = 'The northern branch answered forty letters about winter supplies. '
const R = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'

/** Reads the first page of a file. */
async function readFirst(bytes: Uint8Array | string, fileName: string) {
  const { pages } = await readPages(bytes, fileName)
  const { status, detail, text, loss } = pages[0]!
  return { status, detail, text, loss }
}

async function assertUnread(bytes: Uint8Array | string, fileName: string, detail: string): Promise<void> {
  const page = await readFirst(bytes, fileName)
  assert.deepEqual([page.status, page.detail, page.text], ['unread', detail, ''])
  assert.equal(page.loss!.read, 0)
}

const assertWhole = async (bytes: Uint8Array | string, fileName: string): Promise<void> => {
  for (const { loss, detail } of (await readPages(bytes, fileName)).pages)
    assert.equal(loss, undefined, `${fileName}: ${detail}`)
}

const rows = (count: number): string =>
  Array.from(
    { length: count },
    (_, n) => `<row r="${n + 1}"><c r="A${n + 1}" t="s"><v>${n}</v></c></row>`,
  ).join('')
const strings = (count: number): string => `<sst>${`<si><t>${WORDS}</t></si>`.repeat(count)}</sst>`
const slide = (element: string): string =>
  `<p:sld xmlns:p="p" xmlns:a="a"><p:sp><p:txBody><a:p><a:r><a:${element}>${WORDS}</a:${element}></a:r></a:p></p:txBody></p:sp></p:sld>`
const createDeck = (xml: string): Buffer =>
  createOffice(
    'pptx',
    `<p:presentation xmlns:p="p" xmlns:r="${R}"><p:sldIdLst><p:sldId r:id="s"/></p:sldIdLst></p:presentation>`,
    [['s', 'slide', 's.xml']],
    { 's.xml': xml },
  )
const createOdf = (kind: string, content: string): Buffer =>
  createZip([
    ['mimetype', `application/vnd.oasis.opendocument.${kind}`],
    ['content.xml', `<o><office:body><office:${kind}>${content}</office:${kind}></office:body></o>`],
  ])

describe('lost text is reported', () => {
  test('docx: an unknown element holds the text', async () => {
    const xml = wordPart(`<w:p><w:r><x:words xmlns:x="urn:x">${WORDS}</x:words></w:r></w:p>`)
    await assertUnread(
      createOffice('docx', xml),
      'a.docx',
      'The document has about 60 letters of text that could not be read',
    )
    const partly = wordPart(`${p('Title')}<w:p><w:r><w:words>${WORDS.repeat(60)}</w:words></w:r></w:p>`)
    const page = await readFirst(createOffice('docx', partly), 'a.docx')
    assert.deepEqual(
      [page.status, page.detail, page.text],
      ['read', 'About 3,000 letters of the document could not be read', 'Title'],
    )
    assert.deepEqual(page.loss, {
      kind: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
      unit: 'document',
      held: 3365,
      read: 5,
    })
  })

  test('Word 2003: an unknown element holds the text', () =>
    assertUnread(
      `<?xml version="1.0"?><w:wordDocument xmlns:w="http://schemas.microsoft.com/office/word/2003/wordml"><w:body><w:p><w:r><w:words>${WORDS}</w:words></w:r></w:p></w:body></w:wordDocument>`,
      'a.xml',
      'The document has about 60 letters of text that could not be read',
    ))

  test('xlsx: the shared strings are missing or have no relation', async () => {
    const detail = 'The sheet has about 300 letters of text that could not be read'
    await assertUnread(createSheet(rows(60)), 'a.xlsx', detail)
    const odd = createSheet(rows(5), { parts: { 'oddSharedStrings.xml': strings(5) } })
    await assertUnread(odd, 'a.xlsx', detail)
  })

  test('xlsx: unknown elements hold the cells', async () => {
    const cells = '<row r="1"><c r="A1" t="inlineStr"><is><x><t>'
    await assertWhole(createSheet(`${cells}${WORDS}</t></x></is></c></row>`), 'a.xlsx')
    const book = `<workbook xmlns:r="${R}"><sheets><sheet name="S" r:id="s"/></sheets></workbook>`
    const sheet = `<worksheet><sheetData><row><cell t="str"><v>${WORDS}</v></cell></row></sheetData></worksheet>`
    const xlsx = createOffice('xlsx', book, [['s', 'worksheet', 's.xml']], { 's.xml': sheet })
    await assertUnread(xlsx, 'a.xlsx', 'The sheet has about 60 letters of text that could not be read')
  })

  test('pptx: an unknown element holds the text', () =>
    assertUnread(
      createDeck(slide('words')),
      'a.pptx',
      'The slide has about 60 letters of text that could not be read',
    ))

  test('OpenDocument: unknown elements hold the text', async () => {
    for (const [kind, ending] of [
      ['text', 'odt'],
      ['spreadsheet', 'ods'],
      ['presentation', 'odp'],
      ['graphics', 'odg'],
    ] as const)
      await assertUnread(
        createOdf(kind, `<x:block>${WORDS}</x:block>`),
        `a.${ending}`,
        'The document has about 60 letters of text that could not be read',
      )
    const flat = `<?xml version="1.0"?><office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" office:mimetype="application/vnd.oasis.opendocument.text"><office:body><block>${WORDS}</block></office:body></office:document>`
    await assertUnread(flat, 'a.fodt', 'The document has about 60 letters of text that could not be read')
  })

  test('RTF: an unknown destination or a skipped one holds the text', () =>
    assertUnread(
      `{\\rtf1{\\*\\newbody ${WORDS}}}`,
      'a.rtf',
      'The document has about 60 letters of text that could not be read',
    ))

  test('HTML: an element or a quote that nobody closes hides the text', async () => {
    const detail = 'The document has about 600 letters of text that could not be read'
    for (const start of ['<style>', '<script>', '<div title="', '<nav>'])
      await assertUnread(`<html><body>${start}<p>${WORDS.repeat(10)}</p></body></html>`, 'a.html', detail)
  })

  test('EPUB: a chapter that hides its text', () => {
    const epub = createZip([
      ['mimetype', 'application/epub+zip'],
      ['META-INF/container.xml', '<container><rootfile full-path="o.opf"/></container>'],
      ['o.opf', '<package><item id="a" href="a.xhtml"/><itemref idref="a"/></package>'],
      ['a.xhtml', `<html><body><nav><p>${WORDS}</p></body></html>`],
    ])
    return assertUnread(epub, 'a.epub', 'The page has about 60 letters of text that could not be read')
  })

  test('doc: the lengths of its parts are wrong', async () => {
    const doc = createDoc({ body: `${WORDS}\r` })
    await assertWhole(doc, 'a.doc')
    doc.writeUInt32LE(0, doc.indexOf('eca5c100', 0, 'hex') + 0x4c)
    const about = 'The document has about 60 letters of text that could not be read'
    // The reader takes the text from the pieces, and divides it by the lengths.
    await assertUnread(doc, 'a.doc', about)
  })

  test('ppt: its last edit is damaged', async () => {
    const ppt = createPpt([[WORDS, WORDS]])
    await assertWhole(ppt, 'a.ppt')
    ppt[ppt.indexOf('0000f50f', 0, 'hex') + 2] = 0xf4
    await assertUnread(ppt, 'a.ppt', 'The document has about 100 letters of text that could not be read')
  })

  test('xls and xlsb: cells are counted without the library', async () => {
    const sheet = {
      '!ref': 'A1:A30',
      ...Object.fromEntries(NUMBERS.map((n) => [`A${n}`, { t: 'n', v: n + 0.5 }])),
    }
    const book = { SheetNames: ['S', 'T'], Sheets: { S: sheet, T: { '!ref': 'A1', A1: { t: 's', v: 'x' } } } }
    const build = (bookType: 'biff8' | 'xlsb', made: object = book): Buffer =>
      write(made as never, { type: 'buffer', bookType })
    const stream = readCompoundStreams(build('biff8')).find(({ path }) => path === 'Workbook')!.content
    assert.deepEqual(countBinaryCells(stream), [30, 1])
    const xlsb = await Archive.open(build('xlsb'))
    assert.equal(countXlsbCells((await xlsb.bytes('xl/worksheets/sheet1.bin'))!), 30)
    const empty = { SheetNames: ['S'], Sheets: { S: { '!ref': 'A1' } } }
    for (const held of [{ cells: [30] }, { letters: () => 30 }]) {
      const { holdings } = openLegacyWorkbook(build('biff8', empty), held)
      assert.equal(await holdings!.letters(1, 0), 30)
    }
    for (const bookType of ['biff8', 'xlsb'] as const) await assertWhole(build(bookType), `a.${bookType}`)
  })

  test('mail: an element that is never closed hides the text', async () => {
    const page = await readFirst(
      `Subject: Hidden\nContent-Type: text/html\nContent-Transfer-Encoding: base64\n\n${Buffer.from(`<p>Hi</p><nav>${WORDS.repeat(5)}`).toString('base64')}\n`,
      'a.eml',
    )
    assert.deepEqual(
      [page.status, page.detail, page.text],
      ['read', 'About 300 letters of the mail could not be read', 'Subject: Hidden\n\nHi'],
    )
  })

  test('PDF: glyphs without shapes and characters', async () => {
    const glyph = buildStreamObject(Buffer.from('500 0 0 0 500 500 d1'))
    const names = [1, 2, 3, 4].map((n) => `/x${n}`)
    const pdf = buildRawPdf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>',
      buildStreamObject(Buffer.from(`BT /F 12 Tf 72 700 Td <${'01020304'.repeat(10)}> Tj ET`)),
      `<< /Type /Font /Subtype /Type3 /FontBBox [0 0 500 500] /FontMatrix [0.001 0 0 0.001 0 0] /FirstChar 1 /LastChar 4
       /Widths [500 500 500 500] /CharProcs << ${names.map((name) => `${name} 6 0 R`).join(' ')} >> /Resources << >>
       /Encoding << /Type /Encoding /Differences [1 ${names.join(' ')}] >> >>`,
      glyph,
    ])
    const reader = await openPages(new Uint8Array(pdf), 'application/pdf', { ocrMode: 'local' })
    const { status, detail } = await reader.read(1)
    await reader.close()
    assert.deepEqual(
      [status, detail],
      ['unread', 'The page has about 40 letters of text that could not be read'],
    )
  })
})

const NUMBERS = Array.from({ length: 30 }, (_, n) => n + 1)

describe('nothing is reported of', () => {
  const folder = new URL('../data/', import.meta.url)
  for (const name of readdirSync(folder).filter((name) => /\.(docx|xlsx|pptx|od[stp]|rtf|epub)$/.test(name)))
    test(name, () => assertWhole(readFileSync(new URL(name, folder)), name))

  test('text that is left out on purpose', async () => {
    const run = (properties: string): string => `<w:r><w:rPr>${properties}</w:rPr><w:t>${WORDS}</w:t></w:r>`
    for (const body of [
      run('<w:vanish/>'),
      `<w:del><w:r><w:delText>${WORDS}</w:delText></w:r></w:del>`,
      `<w:r><w:instrText>INCLUDEPICTURE "${WORDS}"</w:instrText></w:r>`,
      `<w:drawing><wp:posOffset>123456789012345678901234</wp:posOffset></w:drawing>`,
      `<!-- ${WORDS} -->`,
    ]) {
      const page = await readFirst(createOffice('docx', wordPart(`<w:p>${body}</w:p>`)), 'a.docx')
      assert.deepEqual([page.status, page.detail, page.loss], ['read', 'The page is blank', undefined])
    }
    await assertWhole(
      createOdf('text', `<text:tracked-changes><text:p>${WORDS}</text:p></text:tracked-changes>`),
      'a.odt',
    )
    await assertWhole(`{\\rtf1{\\*\\generator ${WORDS}}{\\v ${WORDS}}{\\pict ${'ab'.repeat(99)}}}`, 'a.rtf')
    await assertWhole(`<html><script>${WORDS}</script><nav>${WORDS}</nav><p>x</p></html>`, 'a.html')
    await assertWhole(createDoc({ body: `${WORDS}\r` }, { hidden: [0, WORDS.length] }), 'a.doc')
    await assertWhole(createDoc({ body: `\x13INCLUDEPICTURE "${WORDS}"\x14\x01\x15\r` }), 'a.doc')
  })

  test('numbers that their formats shorten or show as dashes', async () => {
    const cells = (value: string): string =>
      `<row r="1">${NUMBERS.map((n) => `<c r="A${n}" s="0"><v>${value}</v></c>`).join('')}</row>`
    const format = (code: string): string =>
      `<numFmts><numFmt numFmtId="170" formatCode="${code}"/></numFmts><cellXfs><xf numFmtId="170"/></cellXfs>`
    await assertWhole(createSheet(cells('0.30000000000000004'), { formats: format('0') }), 'a.xlsx')
    await assertWhole(createSheet(cells('0'), { formats: format('0;0;&quot;-&quot;') }), 'a.xlsx')
  })

  test('strings that are white space', async () => {
    const parts = { 'sharedStrings.xml': `<sst>${'<si><t> </t></si>'.repeat(60)}</sst>` }
    await assertWhole(createSheet(rows(60), { parts }), 'a.xlsx')
  })
})

describe('a page without text says why', () => {
  const shape = '<sheetData/><drawing/>'
  const sheetBook = (parts: Readonly<Record<string, string>>): Buffer =>
    createOffice(
      'xlsx',
      `<workbook xmlns:r="${R}"><sheets><sheet name="Sheet1" r:id="s"/></sheets></workbook>`,
      [['s', 'worksheet', 's.xml']],
      { 's.xml': `<worksheet>${shape}</worksheet>`, ...parts },
    )
  const ods = (more: readonly (readonly [string, string])[] = []): Buffer =>
    createZip([
      ['mimetype', 'application/vnd.oasis.opendocument.spreadsheet'],
      [
        'content.xml',
        '<o xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><office:body><table:table table:name="Sheet1"><table:table-row/></table:table></office:body></o>',
      ],
      ...more,
    ])
  const emptyXls = write({ SheetNames: ['Sheet1'], Sheets: { Sheet1: {} } } as never, {
    type: 'buffer',
    bookType: 'biff8',
  })
  for (const [name, bytes, detail] of [
    ['a.docx', createOffice('docx', wordPart('')), 'The page is blank'],
    ['a.xlsx', sheetBook({}), 'The sheet is blank'],
    ['a.xlsx', sheetBook({ 'media/a.png': 'x' }), 'The sheet has no text, only pictures'],
    ['a.ods', ods(), 'The page is blank'],
    ['a.ods', ods([['Pictures/a.png', 'x']]), 'The page has no text, only pictures'],
    ['a.xls', emptyXls, 'The sheet is blank'],
    ['a.pptx', createDeck('<p:sld xmlns:p="p"/>'), 'The page is blank'],
    ['a.odt', createOdf('text', ''), 'The page is blank'],
    ['a.odp', createOdf('presentation', '<draw:page/>'), 'The page is blank'],
    ['a.doc', createDoc({ body: '\r' }), 'The page is blank'],
    ['a.ppt', createPpt([['', '']]), 'The page is blank'],
    ['a.rtf', '{\\rtf1 }', 'The page is blank'],
    ['a.rtf', '{\\rtf1{\\pict 00}}', 'The page has no text, only pictures'],
    ['a.html', '<html><body></body></html>', 'The page is blank'],
    [
      'a.svg',
      '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>',
      'The page has no text, only pictures',
    ],
    ['a.txt', '\n\n', 'The page is blank'],
    ['a.xml', '<?xml version="1.0"?><a/>', 'The page is blank'],
  ] as const)
    test(`${name}: ${detail}`, async () => {
      const page = await readFirst(bytes, name)
      assert.deepEqual([page.status, page.detail, page.loss], ['read', detail, undefined])
    })
})
