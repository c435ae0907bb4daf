import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type CellObject, write } from '@e965/xlsx'
import { deriveXorBytes } from '../../workers/children/formats/legacy-xor.ts'
import { readCompoundStreams } from '../../workers/children/formats/sheetjs.ts'
import {
  createCompound,
  createDoc,
  createEncryptedOdt,
  createOffice,
  createOldDoc,
  createPpt,
  encryptAgile,
  encryptStandard,
  wordParagraph as p,
  wordPart,
} from '../office.ts'
import { createLock, type Lock, lockStream, lockWorkbook } from '../office-locks.ts'
import { buildTextPdf } from '../pdfs.ts'
import { createZip } from '../zip.ts'
import { read, readPages } from './office-help.ts'

/** Covers encrypted office files, those of Office 97, flat files and drawings. */

// Key and verifier of the password "abc" (MS-OFFCRYPTO, 2.3.7).
const expected = { key: 20810, verifier: 52250 }

const openStream = (bytes: Buffer, name: string): Buffer =>
  Buffer.from(readCompoundStreams(bytes).find(({ path }) => path === name)!.content)

describe('encrypted files', () => {
  const docx = createOffice('docx', wordPart(p('secret '.repeat(2000))))
  const odt = createEncryptedOdt('<o><text:p>secret</text:p></o>', 'Grün')
  for (const [name, bytes] of [
    ['standard.docx', encryptStandard(docx, 'Grün')],
    ['agile.docx', encryptAgile(docx, 'Grün')],
    ['a.odt', odt],
  ] as const)
    test(`${name} needs its password and takes it`, async () => {
      const { type, pages, isLocked } = await readPages(bytes, name, 'Grün')
      assert.match(type, /wordprocessingml|opendocument/)
      assert.deepEqual([pages[0]!.status, isLocked], ['read', false])
      assert.match(pages[0]!.text, /^secret/)
      for (const [password, detail] of [
        [null, 'The document is encrypted and needs a password'],
        ['grün', 'The document is encrypted, and the password does not open it'],
      ] as const) {
        const locked = await readPages(bytes, name, password)
        assert.deepEqual(
          [locked.pages[0]!.status, locked.pages[0]!.detail, locked.isLocked],
          ['unread', detail, true],
        )
      }
    })

  test('a file that Office encrypted by its default password opens without one', async () => {
    assert.match((await read(encryptAgile(docx, 'VelvetSweatshop'), 'a.xyz'))[0]!, /^secret/)
  })

  const sheet = { '!ref': 'A1:A2', A1: { t: 's', v: 'secret' }, A2: { t: 'n', v: 42 } } as const
  const book = { SheetNames: ['S'], Sheets: { S: { ...sheet } } }
  const workbook = openStream(write(book, { type: 'buffer', bookType: 'biff8' }), 'Workbook')
  const lockBook = (lock: Lock): Buffer =>
    createCompound({
      Workbook: lockWorkbook(workbook, Buffer.concat([Buffer.from([1, 0]), lock.info]), (all, at, size) =>
        lockStream(all, lock, 1024).subarray(at, at + size),
      ),
    })
  for (const bits of [undefined, 40, 128] as const)
    for (const [name, make, text] of [
      ['a.doc', (lock: Lock) => createDoc({ body: 'secret '.repeat(300) }, { lock }), /^(secret ?){300}$/],
      ['a.xls', lockBook, /^S\nsecret\n42$/],
      ['a.ppt', (lock: Lock) => createPpt([['secret', 'box']], lock), /^secret\nbox$/],
    ] as const)
      test(`${name} of Office 97 needs its password of ${bits ?? 'old'} bits and takes it`, async () => {
        const bytes = make(createLock('Grün', bits))
        for (const [password, detail] of [
          [null, 'The document is encrypted and needs a password'],
          ['grün', 'The document is encrypted, and the password does not open it'],
        ] as const) {
          const { pages, isLocked } = await readPages(bytes, name, password)
          assert.deepEqual([pages[0]!.status, pages[0]!.detail, isLocked], ['unread', detail, true])
        }
        const { pages } = await readPages(bytes, name, 'Grün')
        assert.equal(pages[0]!.status, 'read')
        assert.match(pages[0]!.text, text)
      })

  test('xls hidden by XOR is read with its password', async () => {
    const info = Buffer.alloc(6)
    info.writeUInt16LE(expected.key, 2)
    info.writeUInt16LE(expected.verifier, 4)
    const mask = deriveXorBytes('abc', expected, 2)!
    const bytes = lockWorkbook(workbook, info, (all, at, size) =>
      Buffer.from(
        all.subarray(at, at + size).map((byte, n) => {
          const mixed = byte ^ mask[(at + n + size) & 15]!
          return (mixed << 5) | (mixed >>> 3)
        }),
      ),
    )
    const xls = createCompound({ Workbook: bytes })
    assert.equal((await readPages(xls, 'a.xls', 'abc')).pages[0]!.text, 'S\nsecret\n42')
    assert.equal((await readPages(xls, 'a.xls', 'abd')).isLocked, true)
  })

  test('doc hidden by XOR is read with its password', async () => {
    const mask = deriveXorBytes('abc', expected, 7)!
    const hide = (stream: Uint8Array, plain: number): Buffer =>
      Buffer.from(stream.map((byte, n) => (n < plain || byte === 0 ? byte : byte ^ mask[n & 15]! || byte)))
    const plain = createDoc({ body: 'secret\r' })
    const main = openStream(plain, 'WordDocument')
    main.writeUInt16LE(0x8300, 0x0a)
    main.writeUInt16LE(expected.verifier, 0x0e)
    main.writeUInt16LE(expected.key, 0x10)
    const doc = createCompound({
      WordDocument: hide(main, 0x44),
      '1Table': hide(openStream(plain, '1Table'), 0),
    })
    assert.equal((await readPages(doc, 'a.doc', 'abc')).pages[0]!.text, 'secret')
    assert.equal((await readPages(doc, 'a.doc')).isLocked, true)
  })

  test('other encryptions of Office 97 say that they cannot be read', async () => {
    const lock = { ...createLock('x', 128), info: Buffer.from('0400030000000000', 'hex') }
    for (const password of [null, 'x']) {
      const { pages, isLocked } = await readPages(createDoc({ body: 'x' }, { lock }), 'a.doc', password)
      assert.match(pages[0]!.detail!, /^The document is encrypted in a way that cannot be read/)
      assert.equal(isLocked, false)
    }
  })
})

describe('formats of Office 97', () => {
  test('doc: pages, fields, tables and notes without hidden text', async () => {
    const body = 'Gr\u00fc\u00dfe \x13 HYPERLINK "x" \x14link\x15\rcell\x07end\x07\fnext hidden\r'
    const at = body.indexOf('hidden')
    const doc = createDoc({ body, notes: '\x02 A note\r' }, { hidden: [at, at + 6] })
    assert.equal((await readPages(doc, 'letter')).type, 'application/msword')
    assert.deepEqual(await read(doc, 'letter'), ['Grüße link\ncell\tend', 'next\n A note'])
  })

  test('xls and xlsb: cells as they are shown, formulas and comments', async () => {
    const cell: CellObject = { t: 'n', v: 0.075, z: '0.0%', c: [{ a: 'Ane', t: 'Check' }] }
    const sheet = { '!ref': 'A1:C2', A1: cell, C2: { t: 's', v: 'walrus' } as CellObject }
    const book = { SheetNames: ['S'], Sheets: { S: sheet } }
    for (const [bookType, fileName, type] of [
      ['biff8', 'a.xls', 'application/vnd.ms-excel'],
      ['xlsb', 'a.dat', 'application/vnd.ms-excel.sheet.binary.macroenabled.12'],
      ['xlml', 'a.xml', 'application/xml'],
    ] as const) {
      const bytes = Buffer.from(write(book, { type: 'buffer', bookType }))
      assert.equal((await readPages(bytes, fileName)).type, type)
      assert.deepEqual(await read(bytes, fileName), ['S\n7.5%\n\t\twalrus\nA1: Check'])
    }
  })

  test('xls: text boxes, charts, headers and footers', async () => {
    const sheet = { '!ref': 'A1', A1: { t: 's', v: 'walrus' } as CellObject }
    const book = { SheetNames: ['Größe'], Sheets: { Größe: sheet } }
    const stream = openStream(write(book, { type: 'buffer', bookType: 'biff8' }), 'Workbook')
    const record = (type: number, ...parts: readonly (string | Buffer)[]): Buffer => {
      const data = Buffer.concat(parts.map((part) => Buffer.from(part as string, 'hex')))
      const head = Buffer.alloc(4)
      head.writeUInt16LE(type, 0)
      head.writeUInt16LE(data.length, 2)
      return Buffer.concat([head, data])
    }
    const object = (kind: string): Buffer => record(0x5d, `15001200${kind}00`, Buffer.alloc(16))
    const text = (length: string): Buffer => record(0x1b6, Buffer.alloc(10), length, Buffer.alloc(6))
    const begin = record(0x0809, '00062000', Buffer.alloc(12))
    const records = [
      object('06'),
      text('0700'),
      record(0x3c, '00', Buffer.from('caf\xe9', 'latin1')),
      record(0x3c, '01', Buffer.from(' €!', 'utf16le')),
      record(0x3c, Buffer.alloc(8)),
      object('19'),
      text('0400'),
      record(0x3c, '00', Buffer.from('note')),
      record(0x14, '0c0000', Buffer.from('&CTop&Rx y z')),
      record(0x15, '0c0000', Buffer.from('&CPage &P of')),
      begin,
      record(0x100d, '00000501', Buffer.from('Title', 'utf16le')),
      record(0x0a),
    ]
    const bytes = Buffer.concat([stream.subarray(0, -4), ...records, stream.subarray(-4)])
    assert.deepEqual(await read(createCompound({ Workbook: bytes }), 'a.xls'), [
      'Größe\nwalrus\ncafé €!\nTop\tx y z\nTitle',
    ])
  })

  test('ppt: slides in their order, with texts of the outline', async () => {
    const ppt = createPpt([
      ['Plan', 'box \xfc'],
      ['Budget', 'sum'],
    ])
    assert.equal((await readPages(ppt, 'slides')).type, 'application/vnd.ms-powerpoint')
    assert.deepEqual(await read(ppt, 'slides'), ['Plan\nbox ü', 'Budget\nsum'])
  })

  test('damaged files say so', async () => {
    for (const bytes of [
      createDoc({ body: 'x' }).subarray(0, 900),
      createCompound({ WordDocument: Buffer.alloc(600) }),
    ]) {
      const { pages } = await readPages(bytes, 'a.doc')
      assert.match(pages[0]!.detail!, /^The document is damaged/)
    }
    const other = await readPages(createCompound({ Other: Buffer.alloc(600) }), 'a.bin')
    assert.equal(other.pages[0]!.detail, 'The document is a compound file of unknown kind')
  })
})

describe('formats before Office 97', () => {
  test('doc of Word 6 and 95: whole or in pieces, in the code page of its font or language', async () => {
    const text = Buffer.from('Gr\xfc\xdfe\rcell\x07end\x07\x07\fnext\r', 'latin1')
    for (const isInPieces of [false, true])
      assert.deepEqual(await read(createOldDoc(text, { isInPieces }), 'a'), ['Grüße\ncell\tend', 'next'])
    const russian = Buffer.from('cff0e8e2e5f2', 'hex')
    assert.deepEqual(await read(createOldDoc(russian, { characterSet: 204 }), 'a.doc'), ['Привет'])
    assert.deepEqual(await read(createOldDoc(russian, { locale: 0x419 }), 'a.doc'), ['Привет'])
    const { pages } = await readPages(createOldDoc(text, { flags: 0x1000 }), 'a.doc')
    assert.equal(pages[0]!.detail, 'Documents of East Asian editions of Word 95 or older cannot be read')
  })

  test('doc of Word 95 with a password', async () => {
    const mask = deriveXorBytes('abc', expected, 7)!
    const main = openStream(createOldDoc(Buffer.from('secret\r'), { flags: 0x100 }), 'WordDocument')
    main.writeUInt16LE(expected.verifier, 0x0e)
    main.writeUInt16LE(expected.key, 0x10)
    const hidden = main.map((byte, n) => (n < 0x34 || byte === 0 ? byte : byte ^ mask[n & 15]! || byte))
    const doc = createCompound({ WordDocument: hidden })
    assert.equal((await readPages(doc, 'a.doc', 'abc')).pages[0]!.text, 'secret')
    assert.equal((await readPages(doc, 'a.doc')).isLocked, true)
  })

  test('xls of Excel 2 to 5', async () => {
    const book = { SheetNames: ['Sheet1'], Sheets: { Sheet1: { '!ref': 'A1', A1: { t: 's', v: 'walrus' } } } }
    for (const bookType of ['biff2', 'biff3', 'biff4', 'biff5'] as const) {
      const bytes = Buffer.from(write(book as never, { type: 'buffer', bookType: bookType as 'biff5' }))
      assert.equal((await readPages(bytes, 'data')).type, 'application/vnd.ms-excel')
      assert.deepEqual(await read(bytes, 'data'), ['Sheet1\nwalrus'], bookType)
    }
  })

  test('ppt of PowerPoint 95 has its text in a stream, and older ones say so', async () => {
    const slides = Buffer.from('03000000ffff0000', 'hex')
    const text = Buffer.from('Plan\r\rCaf\xe9 cr\xe8me\r', 'latin1')
    const streams = { 'PowerPoint Document': slides }
    assert.deepEqual(await read(createCompound({ ...streams, Text_Content: text }), 'a.ppt'), [
      'Plan\n\nCafé crème',
    ])
    for (const bytes of [createCompound(streams), createCompound({ PP40: slides })]) {
      const { pages } = await readPages(bytes, 'a.ppt')
      assert.equal(pages[0]!.detail, 'Presentations of PowerPoint 95 or older cannot be read')
    }
  })
})

describe('flat files and drawings', () => {
  const ODF = 'urn:oasis:names:tc:opendocument:xmlns'
  test('flat OpenDocument is read as what it is', async () => {
    const flat = `<?xml version="1.0"?><o:document xmlns:o="${ODF}:office:1.0" xmlns:t="${ODF}:text:1.0" o:mimetype="application/vnd.oasis.opendocument.text">
      <o:master-styles><header><t:p>Head</t:p></header></o:master-styles><o:body><t:p>narwhal<x:image><o:binary-data>QUJD</o:binary-data></x:image></t:p></o:body></o:document>`
    assert.equal((await readPages(flat, 'a')).type, 'application/vnd.oasis.opendocument.text-flat-xml')
    assert.deepEqual(await read(flat, 'a'), ['Head\nnarwhal'])
  })

  test('packages and documents of Word in one XML file are read as what they are', async () => {
    const part = (name: string, type: string, xml: string) =>
      `<k:part k:name="${name}" k:contentType="${type}"><k:xmlData>${xml}</k:xmlData></k:part>`
    const flat = `<?xml version="1.0"?><k:package xmlns:k="http://schemas.microsoft.com/office/2006/xmlPackage">${part('/_rels/.rels', 'r', '<Relationships><Relationship Id="a" Type="x/officeDocument" Target="d.xml"/></Relationships>')}${part('/d.xml', 'wordprocessingml', wordPart(p('narwhal')))}</k:package>`
    assert.deepEqual(await read(flat, 'a.xml'), ['narwhal'])
    const old = `<?xml version="1.0"?><w:wordDocument xmlns:w="http://schemas.microsoft.com/office/word/2003/wordml">${p('a')}</w:wordDocument>`
    assert.deepEqual(await read(old, 'a.xml'), ['a'])
  })

  test('drawings have their pages, and charts of OpenDocument are read', async () => {
    const odg = createZip([
      ['mimetype', 'application/vnd.oasis.opendocument.graphics'],
      [
        'content.xml',
        '<o><draw:page><draw:frame><draw:text-box><text:p>heron</text:p></draw:text-box></draw:frame><draw:object xlink:href="./Object 1"/></draw:page><draw:page><text:p>two</text:p></draw:page></o>',
      ],
      ['Object 1/content.xml', '<c:chart><c:title><text:p>Turnover</text:p></c:title></c:chart>'],
      [
        'styles.xml',
        '<s><style:master-page><draw:frame><text:p>Company</text:p></draw:frame><draw:frame presentation:class="title"><text:p>Click</text:p></draw:frame></style:master-page></s>',
      ],
    ])
    assert.deepEqual(await read(odg, 'a.odg'), ['heron\nTurnover\nCompany', 'two'])
  })

  test('a file without text says whether it has pictures', async () => {
    const empty = createOffice('docx', wordPart(p('')))
    assert.equal((await readPages(empty, 'a.docx')).pages[0]!.detail, 'The page is blank')
    const pictures = createOffice('docx', wordPart(p('')), [], { 'media/a.png': 'x' })
    assert.equal(
      (await readPages(pictures, 'a.docx')).pages[0]!.detail,
      'The page has no text, only pictures',
    )
  })
})

describe('Visio and iWork', () => {
  const V = 'http://schemas.microsoft.com/visio/2010/relationships'
  const R = 'xmlns:rel="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
  const relations = (...all: readonly (readonly [type: string, target: string])[]): string =>
    `<Relationships>${all.map(([type, target], n) => `<Relationship Id="r${n}" Type="${V}/${type}" Target="${target}"/>`).join('')}</Relationships>`
  const vsdx = createZip([
    [
      '[Content_Types].xml',
      '<Types><Override PartName="/visio/d.xml" ContentType="application/vnd.ms-visio.drawing.main+xml"/></Types>',
    ],
    ['_rels/.rels', relations(['document', 'visio/d.xml'])],
    ['visio/d.xml', '<VisioDocument/>'],
    ['visio/_rels/d.xml.rels', relations(['masters', 'm.xml'], ['pages', 'p.xml'], ['comments', 'c.xml'])],
    ['visio/m.xml', `<Masters ${R}><Master ID="7"><Rel rel:id="r0"/></Master></Masters>`],
    ['visio/_rels/m.xml.rels', relations(['master', 'm1.xml'])],
    [
      'visio/m1.xml',
      '<x><Shape ID="5"><Text>Router</Text><Shapes><Shape ID="6"><Text>Port</Text></Shape></Shapes></Shape></x>',
    ],
    [
      'visio/p.xml',
      `<Pages ${R}><Page ID="0" Name="Plan"><Rel rel:id="r1"/></Page><Page ID="4" Name="Site"><Rel rel:id="r0"/></Page><Page ID="9" Name="Copy"><Rel rel:id="r0"/></Page></Pages>`,
    ],
    ['visio/_rels/p.xml.rels', relations(['page', 'p1.xml'], ['page', 'p2.xml'])],
    [
      'visio/p2.xml',
      '<x><Shape ID="1" Master="7"><Shapes><Shape ID="2" MasterShape="6"/></Shapes></Shape><Shape ID="3" Master="7"><Text><cp IX="0"/>Own&#13;\nlabel <fld IX="0">4711</fld>\n</Text></Shape></x>',
    ],
    ['visio/p1.xml', '<x><Shape ID="1"><Cell N="x"/></Shape></x>'],
    [
      'visio/c.xml',
      '<Comments><CommentList><CommentEntry PageID="0">Too narrow</CommentEntry></CommentList></Comments>',
    ],
  ])

  test('vsdx: pages with the texts of shapes and their masters, and comments', async () => {
    assert.equal((await readPages(vsdx, 'plan.vsdx')).type, 'application/vnd.visio')
    assert.deepEqual(await read(vsdx, 'plan.vsdx'), [
      'Plan\nRouter\nPort\nOwn\nlabel 4711\nToo narrow',
      'Site',
    ])
    assert.deepEqual(await read(vsdx, 'plan'), await read(vsdx, 'plan.vsdx'))
  })

  test('vsd says what it is', async () => {
    const { type, pages } = await readPages(createCompound({ VisioDocument: Buffer.alloc(600) }), 'a')
    assert.equal(type, 'application/vnd.visio')
    assert.equal(pages[0]!.detail, 'Drawings of Visio 2010 or older cannot be read; save them as vsdx')
  })

  test('documents of iWork are read from their preview, or say that they have none', async () => {
    const pdf = await buildTextPdf(2)
    const old = createZip([
      ['index.xml', '<x/>'],
      ['QuickLook/Preview.pdf', pdf],
    ])
    const expected = await readPages(pdf, 'a.pdf')
    for (const name of ['a.pages', 'a.numbers', 'a.key']) {
      const { type, pages } = await readPages(old, name)
      assert.match(type, /^application\/vnd\.apple\./)
      assert.deepEqual(
        pages.map(({ text }) => text),
        expected.pages.map(({ text }) => text),
      )
    }
    const modern = await readPages(createZip([['Index/Document.iwa', 'x']]), 'a.pages')
    assert.match(modern.pages[0]!.detail!, /^Documents of Pages, Numbers and Keynote can be read only if/)
  })
})
