import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, describe, test } from 'node:test'
import { type MediaHint, sniffMediaType } from '../../tasks/documents/media.ts'
import { closeVision, type LocalReader, openPages } from '../../workers/children/documents/pages.ts'
import { buildOutlookMail } from '../outlook.ts'
import { useRecordedOutput } from '../recognized.ts'
import { DEPTH } from '../runs.ts'
import { drawSign } from '../sign.ts'
import { createZip } from '../zip.ts'

/**
 * Covers all kinds of documents except PDF and the pictures of `pages-images.test.ts`. The files in `test/data` are
 * from LibreOffice 7.4, heif-enc, opj_compress and img2webp. This file creates the others.
 */

if (DEPTH === 'quick') useRecordedOutput()
after(closeVision)

const OFFICE = 'application/vnd.openxmlformats-officedocument'
const ODF = 'application/vnd.oasis.opendocument'

const readDataFile = (name: string): Promise<Buffer> => readFile(new URL(`../data/${name}`, import.meta.url))

/** Opens a file as the extraction of an upload does. */
async function openFile(bytes: Uint8Array, hint: MediaHint): Promise<{ type: string; reader: LocalReader }> {
  const type = await sniffMediaType(bytes.subarray(0, 65_536), hint)
  return { type, reader: await openPages(new Uint8Array(bytes), type, { ocrMode: 'local' }) }
}

/** Reads the texts of all pages. `pageless` is the reason why a document has no pages. */
async function read(bytes: Uint8Array | string, hint: MediaHint = {}) {
  const { type, reader } = await openFile(Buffer.from(bytes as string), hint)
  const pages = []
  for (let n = 1; n <= reader.pageCount; n++) pages.push(await reader.read(n))
  await reader.close()
  const attachments = await Promise.all(
    reader.attachments.map(async (file) => ({ ...file, content: Buffer.from(await file.read()).toString() })),
  )
  return { type, pages, texts: pages.map(({ text }) => text), attachments }
}

const FIRST = [
  'Letter of the harbour office',
  'Dear Ms Łukasiewicz,',
  'the northern pier opens on Tuesday, and the fee is 1,284.50 euros.',
  'Berth\tLength',
  'Kestrel\t42 m',
]
const SECOND = 'The second page begins with this sentence about lighthouses.'

const MAIL = {
  subject: 'Fähre at noon',
  senderName: 'Jürgen',
  senderSmtpAddress: 'jurgen@example.com',
  body: 'The fähre leaves at noon.\r\n',
  recipient: { name: 'Ane', email: 'ane@example.com' },
  attachment: { name: 'fees.csv', bytes: Buffer.from('ship,fee\n') },
}

describe('word processing', () => {
  for (const [name, type] of [
    ['letter.docx', `${OFFICE}.wordprocessingml.document`],
    ['letter.odt', `${ODF}.text`],
    ['letter.rtf', 'application/rtf'],
  ] as const)
    test(`${name}: pages, with tables by rows`, async () => {
      const { pages, ...found } = await read(await readDataFile(name))
      assert.deepEqual(found, { type, texts: [FIRST.join('\n'), SECOND], attachments: [] })
      assert.deepEqual(
        pages.map(({ status, method, image }) => [status, method, image]),
        Array(2).fill(['read', 'text_layer', null]),
      )
    })

  test('EPUB: a page for each chapter', async () => {
    const { type, texts } = await read(await readDataFile('letter.epub'))
    assert.equal(type, 'application/epub+zip')
    assert.equal(texts.length, 1)
    assert.ok(texts[0]!.startsWith(`${FIRST.slice(0, 3).join('\n\n')}\n\n`), texts[0])
  })

  test('headers, notes and comments, without deleted, moved or repeated text', async () => {
    const part = (body: string) => `<w:x xmlns:w="w" xmlns:mc="m">${body}</w:x>`
    const p = (text: string) =>
      `<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>${text}</w:t></w:r></w:p>`
    const rel = (id: string, type: string) =>
      `<Relationship Id="${id}" Type="http://x/${type}" Target="${id}.xml"/>`
    const docx = createZip([
      ['[Content_Types].xml', '<Types/>'],
      [
        '_rels/.rels',
        '<Relationships><Relationship Id="a" Type="x/officeDocument" Target="/word/document.xml"/></Relationships>',
      ],
      [
        'word/_rels/document.xml.rels',
        `<Relationships>${rel('h1', 'header')}${rel('h2', 'header')}${rel('f', 'footnotes')}${rel('c', 'comments')}
          <Relationship Id="e" Type="x/header" Target="file:///etc/passwd" TargetMode="External"/></Relationships>`,
      ],
      ['word/h1.xml', part(p('Letterhead'))],
      ['word/h2.xml', part(p('Letterhead'))],
      ['word/f.xml', part(p('A note'))],
      ['word/c.xml', part(p('A remark'))],
      [
        'word/document.xml',
        part(
          `${p('Kept &amp; &#x41;')}<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom>
           <mc:AlternateContent><mc:Choice>${p('once')}</mc:Choice><mc:Fallback>${p('once')}<w:tc>${p('once')}</w:tc></mc:Fallback></mc:AlternateContent></w:p>
           <w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:noBreakHyphen/><w:t>c</w:t><w:br/><w:t>d</w:t></w:r></w:p><w:tr><w:tc>${p('cell')}${p('s')}</w:tc></w:tr>`,
        ),
      ],
    ])
    const { texts } = await read(docx, { fileName: 'a.docx' })
    assert.deepEqual(texts, ['Letterhead\nKept & A\nonce\n\na\tb-c\nd\ncell s\nA note\nA remark'])
  })

  test('RTF: font encodings, Unicode with and without fallbacks, hidden groups', async () => {
    const rtf = String.raw`{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}{\f1\fcharset204 Arial;}{\f2\fcharset128 MS;}}{\*\generator x;}{\info{\title no}}
\f0 Gr\'fc\'dfe \u321?ukasz {\uc0\u8364}\~5 {\f1 \'cf\'f0\'e8\'e2\'e5\'f2} {\f2 \'93\'fa\'96\'7b}\par \u-10179?\u-8704? a\{b\}\\c\line d\page e\cell f\row}`
    const { type, texts } = await read(rtf)
    assert.equal(type, 'application/rtf')
    assert.deepEqual(texts, ['Grüße Łukasz € 5 Привет 日本\n😀 a{b}\\c\nd', 'e\tf'])
    const ofNoCodePage = String.raw`{\rtf1\ansi\ansicpg4711 Gr\'fc\'dfe}`
    assert.deepEqual((await read(ofNoCodePage)).texts, ['Grüße'])
  })
})

describe('sheets and slides', () => {
  for (const [name, type] of [
    ['figures.xlsx', `${OFFICE}.spreadsheetml.sheet`],
    ['figures.ods', `${ODF}.spreadsheet`],
  ] as const)
    test(`${name}: a page for each sheet, dates as dates`, async () => {
      const { type: sniffed, texts } = await read(await readDataFile(name))
      assert.equal(sniffed, type)
      assert.deepEqual(texts, [
        'Fees\nShip\tFee\tPaid on\nKestrel\t1284.5\t2026-03-14\nTotal\t2569\tTRUE',
        'Crew\nAne & Jürgen',
      ])
    })

  test('values are formatted by their number formats', async () => {
    const sheet = (cells: string) => `<worksheet><sheetData><row>${cells}</row></sheetData></worksheet>`
    const book = (date1904: string) =>
      createZip([
        ['[Content_Types].xml', '<Types/>'],
        [
          '_rels/.rels',
          '<Relationships><Relationship Id="a" Type="x/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        ],
        [
          'xl/workbook.xml',
          `<workbook><workbookPr ${date1904}/><sheets><sheet name="S" r:id="s"/></sheets></workbook>`,
        ],
        [
          'xl/_rels/workbook.xml.rels',
          `<Relationships><Relationship Id="s" Type="x/worksheet" Target="s.xml"/><Relationship Id="t" Type="x/sharedStrings" Target="t.xml"/>
           <Relationship Id="y" Type="x/styles" Target="y.xml"/></Relationships>`,
        ],
        [
          'xl/t.xml',
          '<sst><si><t>plain</t></si><si><r><t>rich </t></r><r><t>text</t></r><rPh><t>spoken</t></rPh></si></sst>',
        ],
        [
          'xl/y.xml',
          `<styleSheet><numFmts><numFmt numFmtId="170" formatCode="[$-409]d\\-mmm\\-yy"/><numFmt numFmtId="171" formatCode="0.00 &quot;days&quot;"/></numFmts>
           <cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="22"/><xf numFmtId="170"/><xf numFmtId="171"/></cellXfs></styleSheet>`,
        ],
        [
          'xl/s.xml',
          sheet(`<c t="s"><v>0</v></c><c t="s"><v>1</v></c><c><v>0.30000000000000004</v></c><c s="1"><v>46095.75</v></c><c s="2"><v>46095</v></c>
            <c s="3"><v>46095</v></c><c s="1"><v>0.5</v></c><c t="b"><v>0</v></c><c t="e"><v>#N/A</v></c><c t="inlineStr"><is><t>in line</t></is></c><c s="1"><v>1e99</v></c>`),
        ],
      ])
    const values = [
      'plain',
      'rich text',
      '0.3',
      '2026-03-14 18:00:00',
      '2026-03-14',
      '46095.00 days',
      '12:00:00',
      'FALSE',
      '#N/A',
      'in line',
      '1e99',
    ]
    assert.deepEqual((await read(book(''), { fileName: 'a.xlsx' })).texts, [`S\n${values.join('\t')}`])
    const [old] = (await read(book('date1904="1"'), { fileName: 'a.xlsx' })).texts
    assert.ok(old!.includes('2030-03-15 18:00:00\t2030-03-15'), old)
  })

  for (const [name, type, between] of [
    ['slides.pptx', `${OFFICE}.presentationml.presentation`, '\n\n'],
    ['slides.odp', `${ODF}.presentation`, '\n'],
  ] as const)
    test(`${name}: a page for each slide, with its notes`, async () => {
      const { type: sniffed, texts } = await read(await readDataFile(name))
      assert.equal(sniffed, type)
      assert.deepEqual(texts, [
        `Harbour plan\nDredging starts in May${between}Mention the seals`,
        'Budget of the quay',
      ])
    })
})

describe('mail', () => {
  const MIME = [
    'Received: from a by b; Sat, 14 Mar 2026 10:00:00 +0000',
    'From: =?utf-8?q?J=C3=BCrgen?= <jurgen@example.com>',
    'To: Ane <ane@example.com>, harbour@example.com',
    'Subject: =?utf-8?b?RsOkaHJl?= at noon',
    'Date: Sat, 14 Mar 2026 10:00:00 +0000',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary="b"',
    '',
    '--b',
    'Content-Type: text/plain; charset=iso-8859-1',
    'Content-Transfer-Encoding: quoted-printable',
    '',
    'The f=E4hre leaves at =',
    'noon.',
    '--b',
    'Content-Type: text/csv; name="fees.csv"',
    'Content-Disposition: attachment; filename="fees.csv"',
    'Content-Transfer-Encoding: base64',
    '',
    Buffer.from('ship,fee\nKestrel,12\n').toString('base64'),
    '--b--',
    '',
  ].join('\r\n')

  test('headers, decoded body and attachments', async () => {
    const { type, texts, attachments } = await read(MIME)
    assert.equal(type, 'message/rfc822')
    assert.deepEqual(texts, [
      `Subject: Fähre at noon\nFrom: Jürgen <jurgen@example.com>\nTo: Ane <ane@example.com>, harbour@example.com
Date: 2026-03-14T10:00:00.000Z\n\nThe fähre leaves at noon.\n\nAttachments:\nfees.csv (20 bytes)`,
    ])
    assert.deepEqual(
      attachments.map(({ name, mediaType, content }) => [name, mediaType, content]),
      [['fees.csv', 'text/csv', 'ship,fee\nKestrel,12\n']],
    )
  })

  test('an HTML body is read without its tags', async () => {
    const html =
      'From: a@example.com\nDate: Sat, 14 Mar 2026 10:00:00 +0000\nContent-Type: text/html\n\n<p>Hello</p><p>again</p>'
    assert.match((await read(html)).texts[0]!, /\n\nHello\n\nagain$/)
  })

  test('Outlook files are read the same way', async () => {
    const { type, texts, attachments } = await read(buildOutlookMail(MAIL), { fileName: 'mail.msg' })
    assert.equal(type, 'application/vnd.ms-outlook')
    assert.deepEqual(texts, [
      'Subject: Fähre at noon\nFrom: Jürgen <jurgen@example.com>\nTo: Ane <ane@example.com>\n\nThe fähre leaves at noon.\n\nAttachments:\nfees.csv (9 bytes)',
    ])
    assert.deepEqual(
      attachments.map(({ name, content }) => [name, content]),
      [['fees.csv', 'ship,fee\n']],
    )
  })
})

describe('markup and text files', () => {
  test('HTML without tags, scripts and styles, in its declared encoding', async () => {
    const html = Buffer.from(
      '<!-- x --><!DOCTYPE html><html><head><meta charset="windows-1251"><style>p{}</style></head><body><h1>\xcf\xf0\xe8\xe2\xe5\xf2</h1><script>no()</script><table><tr><td>a</td><td>b</td></tr></table></body></html>',
      'latin1',
    )
    const { type, texts } = await read(html, { fileName: 'page.html' })
    assert.deepEqual([type, texts], ['text/html', ['Привет\n\na b']])
  })

  test('XML: each text with the name of its element', async () => {
    const xml = `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e "expanded">]><inv:Invoice xmlns:inv="x"><ID>2026-00417</ID><Amount currency="EUR">1284.50</Amount>
      <Note>Paid <b>in</b> full</Note><Point lat="1" lon="2"/><![CDATA[raw]]>&e;</inv:Invoice>`
    const { type, texts } = await read(xml)
    assert.equal(type, 'application/xml')
    assert.deepEqual(texts, [
      'ID: 2026-00417\nAmount currency=EUR: 1284.50\nNote: Paid in full\nPoint lat=1 lon=2\nInvoice: raw&e;',
    ])
  })

  test('calendars, cards and subtitles', async () => {
    const ics =
      'BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:A long li\r\n ne\\, folded\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n'
    const calendar = await read(ics)
    assert.deepEqual(
      [calendar.type, calendar.texts[0]!.split('\n')[2]],
      ['text/calendar', 'SUMMARY:A long line, folded'],
    )
    const vtt = await read('WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ane>Good <i>morning</i></v>\n')
    assert.deepEqual(
      [vtt.type, vtt.texts],
      ['text/vtt', ['WEBVTT\n\n00:01.000 --> 00:02.000\nGood morning\n']],
    )
    assert.equal((await read('BEGIN:VCARD\r\nVERSION:4.0\r\nFN:Ane\r\nEND:VCARD\r\n')).type, 'text/vcard')
  })
})

describe('pictures of other kinds', () => {
  for (const [name, type, words] of [
    ['photo.heic', 'image/heic', ['Photo of the harbour']],
    ['photo.jp2', 'image/jp2', ['Photo of the harbour']],
    ['frames.webp', 'image/webp', ['First of the frames', 'Second of the frames', 'Third of the frames']],
  ] as const)
    test(name, async () => {
      const { type: sniffed, pages, texts } = await read(await readDataFile(name))
      assert.deepEqual([sniffed, texts], [type, [...words]])
      for (const { image } of pages) assert.deepEqual([image!.width > 500, image!.height > 100], [true, true])
    })

  test('AVIF and BMP', async () => {
    const avif = await read(await drawSign('Photo of the harbour').encode('avif'))
    assert.deepEqual([avif.type, avif.texts], ['image/avif', ['Photo of the harbour']])
    const { data } = drawSign('Photo of the harbour').getContext('2d').getImageData(0, 0, 900, 200)
    const bmp = Buffer.alloc(54 + 900 * 200 * 4)
    bmp.write('BM')
    bmp.writeUInt32LE(bmp.length, 2)
    bmp.writeUInt32LE(54, 10)
    bmp.writeUInt32LE(40, 14)
    bmp.writeInt32LE(900, 18)
    // A negative height means that rows are stored from top to bottom.
    bmp.writeInt32LE(-200, 22)
    bmp.writeUInt16LE(1, 26)
    bmp.writeUInt16LE(32, 28)
    for (let at = 0; at < data.length; at += 4) bmp.set([data[at + 2]!, data[at + 1]!, data[at]!, 0], 54 + at)
    const read1 = await read(bmp)
    assert.deepEqual([read1.type, read1.texts], ['image/bmp', ['Photo of the harbour']])
    bmp.writeInt32LE(2_000_000, 18)
    assert.equal(
      (await read(bmp)).pages[0]!.detail,
      'The image is too large to be decoded (2000000 x 200 pixels)',
    )
  })

  test('a TIFF whose directory follows its pixels is detected by its first bytes', async () => {
    const head = Buffer.alloc(65_536, 7)
    head.write('II*\0', 0, 'latin1')
    head.writeUInt32LE(100_000, 4)
    assert.equal(await sniffMediaType(head, {}), 'image/tiff')
    assert.equal(
      await sniffMediaType(Buffer.concat([Buffer.from('MM\0*'), head.subarray(4)]), {}),
      'image/tiff',
    )
  })
})

describe('unreadable documents state the reason', () => {
  const readReason = async (bytes: Uint8Array | string, hint: MediaHint = {}) => {
    const { pages } = await read(bytes, hint)
    assert.deepEqual([pages.length, pages[0]!.status], [1, 'unread'])
    return pages[0]!.detail
  }

  test('archives that are damaged, encrypted, or lack a part', async () => {
    const docx = await readDataFile('letter.docx')
    const cut = docx.subarray(0, docx.length - 300)
    assert.equal(
      await readReason(cut, { fileName: 'a.docx' }),
      'The document cannot be opened: it is not a zip archive',
    )
    assert.equal(
      await readReason(createZip([['x', 'y']]), { fileName: 'a.docx' }),
      'The document is damaged: it declares no main part',
    )
    assert.equal(
      await readReason(createZip([['x', 'y']]), { fileName: 'a.odt' }),
      'The document is damaged: it lacks the part content.xml',
    )
    const sealed = createZip([
      ['META-INF/manifest.xml', '<manifest:encryption-data/>'],
      ['content.xml', 'garbage'],
    ])
    assert.equal(
      await readReason(sealed, { fileName: 'a.ods' }),
      'The document is encrypted and needs a password',
    )
  })

  test('invalid mail and truncated pictures', async () => {
    const cfb = Buffer.alloc(2048)
    cfb.write('d0cf11e0a1b11ae1', 0, 'hex')
    assert.equal(await readReason(cfb, { fileName: 'a.msg' }), 'The mail is damaged')
    const cut = buildOutlookMail(MAIL).subarray(0, 3000)
    assert.equal(await readReason(cut, { fileName: 'a.msg' }), 'The mail is damaged')
    const headers = `From: a@example.com\nDate: Tue, 1 Dec 2026 10:00:00 +0000\nX-Long: ${'x'.repeat(3_000_000)}`
    assert.equal(await readReason(Buffer.from(`${headers}\n\nHello`)), 'The mail is damaged')
    const heic = await readDataFile('photo.heic')
    assert.equal(await readReason(heic.subarray(0, 400)), 'The image is damaged')
    const jp2 = await readDataFile('photo.jp2')
    assert.equal(await readReason(jp2.subarray(0, 40)), 'The image is damaged')
  })
})
