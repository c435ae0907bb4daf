import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseDate } from '../../tasks/blog/dates.ts'
import { type MediaHint, sniffMediaType } from '../../tasks/documents/media.ts'
import { openPages } from '../../workers/children/documents/pages.ts'
import { createZip } from '../zip.ts'

/** Documents that deviate from their formats, or from common practice, are still read. */

/** Reads the texts of all pages, as the extraction of an upload does. */
async function read(file: Uint8Array | string, hint: MediaHint = {}): Promise<readonly string[]> {
  const bytes = Buffer.from(file as string)
  const reader = await openPages(new Uint8Array(bytes), await sniffMediaType(bytes, hint), {
    ocrMode: 'none',
  })
  const texts = []
  for (let n = 1; n <= reader.pageCount; n++) texts.push((await reader.read(n)).text)
  await reader.close()
  return texts
}

/** Builds a workbook of one sheet from its cell formats and rows. */
const createWorkbook = (formats: string, rows: string): Buffer =>
  createZip([
    ['[Content_Types].xml', '<Types/>'],
    [
      '_rels/.rels',
      '<Relationships><Relationship Id="a" Type="x/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    ],
    ['xl/workbook.xml', '<workbook><sheets><sheet name="S" r:id="s"/></sheets></workbook>'],
    [
      'xl/_rels/workbook.xml.rels',
      '<Relationships><Relationship Id="s" Type="x/worksheet" Target="s.xml"/><Relationship Id="y" Type="x/styles" Target="y.xml"/></Relationships>',
    ],
    ['xl/y.xml', `<styleSheet>${formats}</styleSheet>`],
    ['xl/s.xml', `<worksheet><sheetData>${rows}</sheetData></worksheet>`],
  ])

describe('encodings', () => {
  const DECLARED = '<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1">'
  const page = (head: string) => `<html><head>${head}</head><body><p>Grüße</p></body></html>`

  test('a mail is decoded by its headers, whatever its HTML declares', async () => {
    const head = 'From: a@example.com\nDate: Sat, 14 Mar 2026 10:00:00 +0000\nMIME-Version: 1.0\n'
    const eightBit = `${head}Content-Type: text/html; charset=iso-8859-1\nContent-Transfer-Encoding: 8bit\n\n${page(DECLARED)}`
    assert.match((await read(Buffer.from(eightBit, 'latin1'), { fileName: 'a.eml' }))[0]!, /\n\nGrüße$/)
    const utf8 = `${head}Content-Type: text/html; charset=utf-8\n\n${page(DECLARED)}`
    assert.match((await read(utf8))[0]!, /\n\nGrüße$/)
  })

  test('a byte order mark overrides a declared encoding', async () => {
    assert.deepEqual(await read(`\ufeff${page(DECLARED)}`), ['Grüße'])
    const xml = '\ufeff<?xml version="1.0" encoding="iso-8859-1"?><r><a>Grüße</a></r>'
    assert.deepEqual(await read(xml), ['a: Grüße'])
  })

  test('text that declares UTF-16 in single bytes is UTF-8', async () => {
    const xml = '<?xml version="1.0" encoding="utf-16"?><r><a>Grüße</a></r>'
    assert.deepEqual(await read(xml), ['a: Grüße'])
    assert.deepEqual(await read(Buffer.from(`\ufeff${xml}`, 'utf16le')), await read(xml))
    assert.deepEqual(await read(page('<meta charset="unicode">')), ['Grüße'])
  })
})

test('phonetic guides are not part of the text', async () => {
  const html =
    '<html><body><p><ruby>日<rp>(</rp><rt>に</rt><rp>)</rp>本<rt>ほん</ruby>語</p><p>x</p></body></html>'
  assert.deepEqual(await read(html), ['日本語\n\nx'])
  const ruby = (base: string, spoken: string) =>
    `<w:r><w:ruby><w:rubyPr/><w:rt><w:r><w:t>${spoken}</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>${base}</w:t></w:r></w:rubyBase></w:ruby></w:r>`
  const docx = createZip([
    ['[Content_Types].xml', '<Types/>'],
    [
      '_rels/.rels',
      '<Relationships><Relationship Id="a" Type="x/officeDocument" Target="d.xml"/></Relationships>',
    ],
    ['d.xml', `<w:document><w:p>${ruby('日', 'に')}${ruby('本', 'ほん')}</w:p></w:document>`],
  ])
  assert.deepEqual(await read(docx, { fileName: 'a.docx' }), ['日本'])
})

test("a mail's picture is an attachment unless the body shows it", async () => {
  const picture = (name: string, more: readonly string[]) => [
    '--b',
    `Content-Type: image/jpeg; name=${name}`,
    `Content-Disposition: inline; filename=${name}`,
    ...more,
    'Content-Transfer-Encoding: base64',
    '',
    'AAAA',
  ]
  const mail = [
    'From: a@example.com',
    'Date: Sat, 14 Mar 2026 10:00:00 +0000',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b',
    'Content-Type: text/html',
    '',
    '<p>The receipt</p><img src="cid:logo@example.com">',
    ...picture('logo.jpg', ['Content-Id: <logo@example.com>']),
    ...picture('receipt.jpg', ['Content-Id: <photo@example.com>']),
    ...picture('other.jpg', []),
    '--b--',
    '',
  ]
  const [text] = await read(mail.join('\r\n'))
  assert.match(text!, /\nThe receipt\n\nAttachments:\nreceipt\.jpg \(3 bytes\)\nother\.jpg \(3 bytes\)$/)
})

test('a calendar line may be folded within a character', async () => {
  const whole = Buffer.from('BEGIN:VCALENDAR\r\nSUMMARY:Grüße\r\nEND:VCALENDAR\r\n')
  const amid = whole.indexOf('ü') + 1
  const folded = Buffer.concat([whole.subarray(0, amid), Buffer.from('\r\n '), whole.subarray(amid)])
  assert.match((await read(folded))[0]!, /^SUMMARY:Grüße$/m)
})

describe('XHTML', () => {
  const PAGE =
    '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="a.js"/><style/></head><body><h1>One</h1><iframe src="b"/><p>Text</p></body></html>'

  test('empty elements end where they begin', async () => {
    assert.deepEqual(await read(`<?xml version="1.0"?>${PAGE}`, { fileName: 'a.xhtml' }), ['One\n\nText'])
    const book = createZip([
      ['mimetype', 'application/epub+zip'],
      [
        'META-INF/container.xml',
        '<container><rootfiles><rootfile full-path="a.opf"/></rootfiles></container>',
      ],
      [
        'a.opf',
        '<package><manifest><item id="c" href="c.xhtml"/></manifest><spine><itemref idref="c"/></spine></package>',
      ],
      ['c.xhtml', PAGE],
    ])
    assert.deepEqual(await read(book, { fileName: 'a.epub' }), ['One\n\nText'])
  })
})

describe('sheets', () => {
  const readSheet = async (formats: string, rows: string) =>
    (await read(createWorkbook(formats, rows), { fileName: 'a.xlsx' }))[0]!

  test('a value is in its column, even if cells before it are empty or missing', async () => {
    const say = (words: string) => `t="inlineStr"><is><t>${words}</t></is>`
    const rows = `<row><c r="A1" ${say('Debit')}</c><c r="B1" ${say('Credit')}</c><c r="C1" ${say('Note')}</c></row>
      <row><c r="B2"><v>100</v></c></row><row><c r="A3"/><c r="B3"/><c r="C3" ${say('none')}</c></row>
      <row><c><v>1</v></c><c/><c><v>3</v></c></row><row><c r="XFD5"><v>5</v></c></row>`
    const far = `${'\t'.repeat(100)}5`
    assert.equal(await readSheet('', rows), `S\nDebit\tCredit\tNote\n\t100\n\t\tnone\n1\t\t3\n${far}`)
  })

  test('OpenDocument repeats cells as declared, also below merged ones', async () => {
    const cell = (words: string, more = '') =>
      `<table:table-cell ${more}>${words && `<text:p>${words}</text:p>`}</table:table-cell>`
    const row = (cells: string, more = '') => `<table:table-row ${more}>${cells}</table:table-row>`
    const times = (n: number) => `table:number-columns-repeated="${n}"`
    const rows = [
      row(cell('Jan') + cell('Feb') + cell('Mar') + cell('', times(16_381))),
      row(cell('100', times(2)) + cell('120')),
      row(cell('', times(2)) + cell('9'), 'table:number-rows-repeated="2"'),
      row(`${cell('wide')}<table:covered-table-cell/>${cell('end')}`),
      row(cell('', times(16_384)), 'table:number-rows-repeated="1048570"'),
    ]
    const ods = createZip([
      ['mimetype', 'application/vnd.oasis.opendocument.spreadsheet'],
      ['content.xml', `<o><table:table table:name="S">${rows.join('')}</table:table></o>`],
    ])
    const lines = ['S', 'Jan\tFeb\tMar', '100\t100\t120', '\t\t9', '\t\t9', 'wide\t\tend']
    assert.deepEqual(await read(ods), [lines.join('\n')])
  })

  test('OpenDocument rows that are empty to the end take no space from other rows', async () => {
    const rest = '<table:table-cell table:number-columns-repeated="16383"/>'
    const row = `<table:table-row><table:table-cell><text:p>1</text:p></table:table-cell>${rest}</table:table-row>`
    const ods = createZip([
      ['mimetype', 'application/vnd.oasis.opendocument.spreadsheet'],
      ['content.xml', `<o><table:table table:name="S">${row.repeat(25_000)}</table:table></o>`],
    ])
    assert.deepEqual(await read(ods), [`S${'\n1'.repeat(25_000)}`])
  })

  test('numeric character references are decoded', async () => {
    const rows = `<row><c t="inlineStr"><is><t>one_x000D_\ntwo _x005F_x000D_ a_x_b</t></is></c></row>`
    assert.equal(await readSheet('', rows), 'S\none two _x000D_ a_x_b')
  })

  test('a duration is in hours, and the first days of 1900 are as programs show them', async () => {
    const formats = `<numFmts><numFmt numFmtId="170" formatCode="[h]:mm"/></numFmts>
      <cellXfs><xf numFmtId="170"/><xf numFmtId="46"/><xf numFmtId="14"/></cellXfs>`
    const cells = [
      [0, 1.7708333333333333],
      [1, 0.5],
      [0, -0.25],
      [2, 1],
      [2, 59],
      [2, 61],
    ].map(([format, value]) => `<c s="${format}"><v>${value}</v></c>`)
    assert.equal(
      await readSheet(formats, `<row>${cells.join('')}</row>`),
      'S\n42:30:00\t12:00:00\t-06:00:00\t1900-01-01\t1900-02-28\t1900-03-01',
    )
  })
})

describe('long documents take linear time', () => {
  /** Time limit of a test. A quadratic reader took half a minute. */
  const MAX_MS = 5000
  async function assertFast(read: () => Promise<unknown>): Promise<void> {
    const before = process.cpuUsage()
    await read()
    const { user, system } = process.cpuUsage(before)
    assert.ok(user + system < 1000 * MAX_MS, `${(user + system) / 1000} ms of CPU time`)
  }

  test('a sheet of 100,000 rows', async () => {
    const row = '<row><c><v>123456</v></c><c><v>3</v></c></row>'
    const sheet = createWorkbook('', row.repeat(100_000))
    await assertFast(async () =>
      assert.equal((await read(sheet, { fileName: 'a.xlsx' }))[0]!.length, 900_001),
    )
  })

  test('an XML text with 400,000 elements', async () => {
    const xml = `<?xml version="1.0"?><a>x${'<b>y</b>'.repeat(400_000)}</a>`
    await assertFast(async () => assert.equal((await read(xml))[0]!.length, 400_004))
  })

  test('200,000 spaces within a line', async () => {
    const rtf = `{\\rtf1 a${' '.repeat(200_000)}b}`
    await assertFast(async () => assert.equal((await read(rtf))[0]!.length, 200_002))
  })
})

describe('names of object properties', () => {
  const WORDS = ['constructor', 'toString', 'valueOf', 'hasOwnProperty', '__proto__']

  test('are control words without text in RTF', async () => {
    const rtf = `{\\rtf1 before ${WORDS.map((word) => `\\${word.replaceAll('_', '')} `).join('')}after\\par}`
    assert.deepEqual(await read(rtf), ['before after'])
  })

  test('are not file extensions or time zones', async () => {
    const zip = createZip([['a.txt', 'a']])
    for (const word of WORDS) {
      assert.equal(await sniffMediaType(zip, { fileName: `a.${word}` }), 'application/zip')
      assert.equal(parseDate(`2026-03-14 10:00 ${word}`), null)
    }
  })
})

test('unclosed subtitle tags take linear time', async () => {
  const before = process.cpuUsage()
  const marks = '<c'.repeat(200_000)
  assert.equal(
    (await read(`WEBVTT\n\n${marks}`, { fileName: 'a.vtt' }))[0]!.length,
    'WEBVTT\n\n'.length + marks.length,
  )
  // A quadratic reader took 70 s of CPU time.
  assert.ok(process.cpuUsage(before).user < 3_000_000)
})
