import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { deflateSync } from 'node:zlib'
import { type MediaHint, sniffMediaType } from '../../tasks/documents/media.ts'
import { openPages } from '../../workers/children/documents/pages.ts'
import { buildCms, buildTnef, buildTnefProperties } from '../envelopes.ts'
import { buildOutlookFile, type OutlookObject } from '../outlook.ts'

/** Covers mails of every form: MIME, mbox, Outlook, TNEF and S/MIME. `formats.test.ts` has one of each common form. */

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')

async function read(file: Uint8Array | string, hint: MediaHint = {}) {
  const bytes = Buffer.from(file as string)
  const type = await sniffMediaType(bytes.subarray(0, 65_536), hint)
  const reader = await openPages(new Uint8Array(bytes), type, { ocrMode: 'none' })
  const pages = []
  for (let n = 1; n <= reader.pageCount; n++) pages.push(await reader.read(n))
  const files = []
  for (const { name, read: readFile } of reader.attachments)
    files.push([name, Buffer.from(await readFile()).toString()])
  return { type, pages, texts: pages.map(({ text }) => text), files }
}

async function readMail(file: Uint8Array | string, hint: MediaHint = {}) {
  const { type, pages, files } = await read(file, hint)
  assert.deepEqual([type, pages.length, pages[0]!.status], ['message/rfc822', 1, 'read'])
  return { text: pages[0]!.text, detail: pages[0]!.detail, files }
}

const HEADERS = 'From: Ann <ann@example.org>\nDate: Sat, 14 Mar 2026 10:00:00 +0000\nSubject: Offer\n'
const SHOWN = 'Subject: Offer\nFrom: Ann <ann@example.org>\nDate: 2026-03-14T10:00:00.000Z'

const buildParts = (type: string, ...parts: readonly string[]): string =>
  `${HEADERS}Content-Type: ${type}; boundary="B"\n\n${parts.map((part) => `--B\n${part}\n`).join('')}--B--\n`

describe('versions of the body', () => {
  const buildAlternative = (plain: string, html: string): string =>
    buildParts('multipart/alternative', `\n${plain}`, `Content-Type: text/html\n\n${html}`)

  test('HTML replaces a stub', async () => {
    const html = '<p>Your invoice <b>walrus</b> of 120.50 EUR</p>'
    for (const stub of ['Please view this email in an HTML capable reader.', '', 'Offer'])
      assert.equal((await readMail(buildAlternative(stub, html))).text, `${SHOWN}\n\n${EXPECTED_HTML(stub)}`)
  })
  const EXPECTED_HTML = (stub: string): string =>
    stub === 'Offer' ? 'Offer\n\nYour invoice walrus of 120.50 EUR' : 'Your invoice walrus of 120.50 EUR'

  test('plain text with the words of the HTML stays, with its lines', async () => {
    const plain = 'The ferry\n  leaves at noon.\nSee https://example.org/ferry'
    const html = '<p>The ferry leaves at noon.</p><a href="x">See</a>'
    assert.equal((await readMail(buildAlternative(plain, html))).text, `${SHOWN}\n\n${plain}`)
  })

  test('HTML with more numbers replaces plain text', async () => {
    const words = 'The ferry of the northern pier leaves each day at noon and returns to the harbour at night'
    const { text } = await readMail(buildAlternative(words, `<p>${words}</p><p>Fee: 17.40</p>`))
    assert.match(text, /Fee: 17\.40$/)
  })

  test('other types of bodies', async () => {
    for (const type of ['text', 'text/markdown', 'text/enriched', 'application/xhtml+xml']) {
      const mail = `${HEADERS}MIME-Version: 1.0\nContent-Type: ${type}\n\n<bold>walrus</bold>`
      const { text, files } = await readMail(mail)
      assert.match(text, /walrus/, type)
      assert.deepEqual(files, [])
    }
  })
})

describe('8-bit text without a declared encoding', () => {
  test('in headers, bodies, HTML and names of attachments', async () => {
    const { text, files } = await readMail(
      latin1(
        `Subject: Gr\xfc\xdfe\nTo: J\xfcrgen <j@example.org>\n${buildParts(
          'multipart/mixed',
          '\nGr\xfc\xdfe aus K\xf6ln',
          'Content-Type: text/html\n\n<p>Stra\xdfe</p>',
          'Content-Type: text/csv; name="Geb\xfchren.csv"\nContent-Disposition: attachment\n\n1',
        ).replace('Subject: Offer\n', '')}`,
      ),
    )
    assert.match(text, /^Subject: Grüße\nFrom: .*\nTo: Jürgen <j@example.org>\n/)
    assert.match(text, /Grüße aus Köln\s+Straße\n\nAttachments:\nGebühren\.csv/)
    assert.deepEqual(files, [['Gebühren.csv', '1\n']])
  })

  test('HTML declares its encoding itself', async () => {
    const html = '<meta charset="windows-1251"><p>\xcf\xf0\xe8\xe2\xe5\xf2</p>'
    const { text } = await readMail(latin1(`${HEADERS}Content-Type: text/html\n\n${html}`))
    assert.match(text, /Привет$/)
  })

  test('headers are in the encoding that a part declares', async () => {
    const mail = 'Content-Type: text/plain; charset=koi8-r\n\n\xf0\xd2\xc9\xd7\xc5\xd4'
    const { text } = await readMail(latin1(`To: \xf0\xd2\xc9\xd7\xc5\xd4\n${HEADERS}${mail}`))
    assert.match(text, /To: Привет\n[\s\S]*\n\nПривет$/)
  })

  test('UTF-8, declared or not, and declared without being it', async () => {
    for (const type of ['text/plain', 'text/plain; charset=us-ascii', 'text/plain; charset=unknown-8bit'])
      assert.match((await readMail(`${HEADERS}Content-Type: ${type}\n\nGrüße`)).text, /Grüße$/, type)
    const wrong = latin1(`${HEADERS}Content-Type: text/plain; charset=utf-8\n\nGr\xfc\xdfe`)
    assert.match((await readMail(wrong)).text, /Grüße$/)
  })
})

describe('mails that are incomplete or in other files', () => {
  test('byte order marks and blank lines', async () => {
    for (const start of ['\ufeff', '\n\r\n', '\ufeff\n'])
      assert.equal((await readMail(`${start}${HEADERS}\nHello`)).text, `${SHOWN}\n\nHello`)
    const wide = Buffer.from(`\ufeff${HEADERS}\nGrüße`, 'utf16le')
    assert.equal((await readMail(wide)).text, `${SHOWN}\n\nGrüße`)
  })

  test('drafts', async () => {
    const draft = 'X-Unsent: 1\nTo: Bob <bob@example.org>\nSubject: Draft\n\nHello'
    assert.equal((await readMail(draft)).text, 'Subject: Draft\nTo: Bob <bob@example.org>\n\nHello')
    const mime = 'MIME-Version: 1.0\nSubject: Draft\nContent-Type: text/html\n\n<p>Hello</p>'
    assert.equal((await readMail(mime)).text, 'Subject: Draft\n\nHello')
    const named = 'Subject: Draft\nContent-Transfer-Encoding: base64\n\nSGVsbG8='
    assert.equal((await readMail(named, { fileName: 'a.eml' })).text, 'Subject: Draft\n\nHello')
    assert.equal((await read(named)).type, 'text/plain')
    assert.equal((await read('Subject: notes\nDate: today\n\nHello')).type, 'text/plain')
    assert.equal((await read('Just words', { fileName: 'a.eml' })).type, 'text/plain')
  })

  test('Apple mails end before their property list', async () => {
    const mail = `${HEADERS}\nHello\n`
    const emlx = `${mail.length}      \n${mail}<?xml version="1.0"?><plist><dict/></plist>\n`
    assert.equal((await readMail(emlx, { fileName: '1.emlx' })).text, `${SHOWN}\n\nHello`)
  })

  test('every header that names people', async () => {
    const names = ['Sender', 'Reply-To', 'To', 'Cc', 'Bcc', 'Resent-From', 'Resent-To', 'Resent-Cc']
    const headers = names.map((name, n) => `${name}: "P${n}" <p${n}@example.org>\n`).join('')
    const envelope = 'Delivered-To: other@example.org\nReturn-Path: <p0@example.org>\n'
    const { text } = await readMail(`${envelope}${headers}${HEADERS}\nHello`)
    for (const [n, name] of names.entries()) assert.ok(text.includes(`${name}: P${n} <p${n}@example.org>\n`))
    assert.match(text, /Delivered-To: other@example\.org/)
    assert.doesNotMatch(text, /Return-Path/, 'repeats an address')
  })

  test('mails inside of mails', async () => {
    const inner = `${HEADERS.replace('Offer', 'Inner')}Reply-To: desk@example.org\n${buildParts(
      'multipart/mixed',
      '\nInner text',
      'Content-Disposition: attachment; filename=a.txt\n\nA',
    ).slice(HEADERS.length)}`
      .replaceAll('--B', '--C')
      .replace('"B"', '"C"')
    const mail = buildParts(
      'multipart/mixed',
      '\nOuter text',
      `Content-Type: message/rfc822\n\n${inner}`,
      `Content-Type: message/rfc822\nContent-Disposition: attachment\n\n${HEADERS}\nx`,
    )
    const { text, files } = await readMail(mail)
    assert.match(
      text,
      /Outer text\n\nSubject: Inner\nFrom: .*\nReply-To: desk@example\.org\n[\s\S]*Inner text/,
    )
    assert.deepEqual(
      files.map(([name]) => name),
      ['Offer.eml', 'a.txt'],
    )
  })
})

describe('content without text has a reason', () => {
  test('pictures, broken parts and encryption', async () => {
    const picture = buildParts(
      'multipart/related',
      'Content-Type: text/html\n\n<img src="cid:a">',
      'Content-Type: image/png; name=a.png\nContent-ID: <a>\n\nx',
    )
    const { detail, files } = await readMail(picture)
    assert.equal(detail, 'The mail has content, but no text that can be read')
    assert.equal(files[0]![0], 'a.png', 'the picture is the content')
    const broken = `${HEADERS}Content-Type: multipart/mixed; boundary=X\n\n--B\n\nHello\n--B--\n`
    assert.equal((await readMail(broken)).detail, 'The mail has content, but no text that can be read')
    const pgp = buildParts('multipart/encrypted', 'Content-Type: application/octet-stream\n\nx')
    assert.equal((await readMail(pgp)).detail, 'The content of the mail is encrypted')
  })

  test('an empty mail has none', async () => {
    for (const mail of [
      `${HEADERS}\n`,
      buildParts('multipart/mixed', '\n', 'Content-Type: text/html\n\n<p></p>'),
    ])
      assert.equal((await readMail(mail)).detail, null)
  })
})

describe('mbox', () => {
  const LINE = 'From ann@example.org Sat Mar 14 10:00:00 2026'

  test('a page for each mail, and their attachments', async () => {
    const attached = buildParts(
      'multipart/mixed',
      '\nFrom here\n\nFrom now on, Sat 10:00\n\nwe sail.\n\n>From Ann\n>>From Bob',
      'Content-Disposition: attachment; filename=a.txt\n\nA',
    )
    const mails = [`${HEADERS}\nOne`, attached, `Content-Type: text/html; charset=utf-8\n\n<p>Três</p>`]
    const { type, texts, files } = await read(mails.map((mail) => `${LINE}\n${mail}\n`).join('\n'))
    assert.equal(type, 'message/rfc822')
    assert.deepEqual(texts, [
      `${SHOWN}\n\nOne`,
      `${SHOWN}\n\nFrom here\n\nFrom now on, Sat 10:00\n\nwe sail.\n\nFrom Ann\n>From Bob\n\nAttachments:\na.txt (2 bytes)`,
      'Três',
    ])
    assert.deepEqual(files, [['a.txt', 'A\n']])
  })

  test('separators of other programs, and CRLF', async () => {
    const lines = [
      'From - Sat Mar 14 10:00:00 2026',
      'From 1234@xxx Sat Mar 14 10:00:00 +0000 2026',
      'From "Ann B" Sat, 14 Mar 2026 10:00:00 +0100',
    ]
    const file = lines.map((line, n) => `${line}\n${HEADERS}\nMail ${n}\n`).join('\n')
    for (const mbox of [file, file.replaceAll('\n', '\r\n')])
      assert.deepEqual(
        (await read(mbox)).texts,
        [0, 1, 2].map((n) => `${SHOWN}\n\nMail ${n}`),
      )
  })

  test('a damaged mail leaves the others readable', async () => {
    const long = `${HEADERS}X-Long: ${'x'.repeat(3_000_000)}`
    const { pages } = await read(`${LINE}\n${long}\n\nOne\n\n${LINE}\n${HEADERS}\nTwo\n`)
    assert.deepEqual(
      pages.map(({ status, detail }) => [status, detail]),
      [
        ['unread', 'The mail is damaged'],
        ['read', null],
      ],
    )
  })
})

describe('Outlook', () => {
  const readOutlook = async (message: OutlookObject) => {
    const { type, pages, files } = await read(buildOutlookFile(message))
    assert.deepEqual([type, pages.length, pages[0]!.status], ['application/vnd.ms-outlook', 1, 'read'])
    return { text: pages[0]!.text, detail: pages[0]!.detail, files }
  }
  const NOTE = { '001A001F': 'IPM.Note', '1000001F': 'Body' }

  test('a file whose last sector is not whole', async () => {
    const file = buildOutlookFile({ properties: NOTE })
    const end = file.findLastIndex((byte) => byte !== 0)
    assert.deepEqual((await read(file.subarray(0, end + 1))).texts, ['Body'])
  })

  test('names of attachments', async () => {
    const data = { '37010102': Buffer.from('x') }
    const inner: OutlookObject = { properties: { '001A001F': 'IPM.Note', '0037001F': 'Inner' } }
    const { files, text } = await readOutlook({
      properties: NOTE,
      attachments: [
        { properties: { ...data, '3707001F': 'long.txt', '3704001F': 'SHORT~1.TXT' } },
        { properties: { ...data, '3001001F': 'display', '3703001F': '.pdf' } },
        { properties: { ...data, '3704001F': 'SHORT~1.TXT' } },
        { properties: data },
        { properties: { '37050003': 5 }, message: inner },
        { properties: { '3001001F': 'only a link' } },
      ],
    })
    assert.deepEqual(
      files.map(([name]) => name),
      ['long.txt', 'display.pdf', 'SHORT~1.TXT', 'Attachment 4', 'Inner.msg', 'only a link'],
    )
    assert.doesNotMatch(text, /undefined/)
    assert.match(text, /only a link \(0 bytes\)/)
  })

  // The example of MS-OXRTFCP, 4.1.1.
  const COMPRESSED = Buffer.from(
    '2d0000002b0000004c5a4675f1c5c7a703000a00726370673132354232' + '0af32068656c090020627705b06c647d0a800fa0',
    'hex',
  )
  const packRtf = (rtf: string): Buffer => {
    const head = Buffer.alloc(16)
    head.writeUInt32LE(rtf.length + 12, 0)
    head.writeUInt32LE(rtf.length, 4)
    head.write('MELA', 8)
    return Buffer.concat([head, latin1(rtf)])
  }

  test('bodies in RTF', async () => {
    const readRtf = async (rtf: Uint8Array) =>
      (await readOutlook({ properties: { '001A001F': 'IPM.Note', '10090102': rtf } })).text
    assert.equal(await readRtf(COMPRESSED), 'hello world')
    const html =
      '{\\rtf1\\ansi\\ansicpg1252\\fromhtml1 {\\*\\htmltag64 <p>}Gr\\\'fc\\\'dfe{\\*\\htmltag72 </p>}{\\*\\htmltag64 <p class="x">}\\htmlrtf {\\htmlrtf0 two\\htmlrtf }\\htmlrtf0{\\*\\htmltag72 </p>}}'
    assert.match(await readRtf(packRtf(html)), /^Grüße\s*\n\s*two$/)
    const text = "{\\rtf1\\ansi\\ansicpg1251\\fromtext \\'cf\\'f0\\'e8\\'e2\\'e5\\'f2\\par two}"
    assert.equal(await readRtf(packRtf(text)), 'Привет\ntwo')
  })

  test('a body that cannot be read has a reason', async () => {
    for (const rtf of [Buffer.from('garbage that is no RTF at all'), packRtf('{\\rtf1 {\\pict 00}}')]) {
      const { detail } = await readOutlook({ properties: { '001A001F': 'IPM.Note', '10090102': rtf } })
      assert.equal(detail, 'The mail has content, but no text that can be read')
    }
    const false_ = Buffer.from(COMPRESSED)
    false_.writeUInt32LE(0x7fffffff, 0)
    await readOutlook({ properties: { '001A001F': 'IPM.Note', '10090102': false_ } })
  })

  test('texts in code pages', async () => {
    // "Test" in Chinese, in Big5.
    const chinese = Buffer.from('b4fab8d5', 'hex')
    const russian = latin1('\xcf\xf0\xe8\xe2\xe5\xf2')
    for (const [codePages, bytes, expected] of [
      [{ '3FFD0003': 950 }, chinese, '測試'],
      [{ '3FF10003': 0x0404 }, chinese, '測試'],
      [{ '3FDE0003': 1251 }, russian, 'Привет'],
      [{ '3FF10003': 0x0419 }, russian, 'Привет'],
      [{}, latin1('Gr\xfc\xdfe'), 'Grüße'],
    ] as const) {
      const { text } = await readOutlook({
        properties: { ...codePages, '0037001E': bytes, '0C1A001E': bytes, '1000001E': bytes },
        recipients: [{ properties: { '3001001E': bytes } }],
        attachments: [{ properties: { '3707001E': bytes, '37010102': latin1('x') } }],
      })
      const headers = `Subject: ${expected}\nFrom: ${expected}\nTo: ${expected}`
      assert.equal(text, `${headers}\n\n${expected}\n\nAttachments:\n${expected} (1 bytes)`)
    }
  })

  test('HTML in the Internet code page, in its own, or in UTF-8', async () => {
    const koi8 = latin1('<meta charset="windows-1252"><p>\xf0\xd2\xc9\xd7\xc5\xd4</p>')
    const own = latin1('<meta charset="koi8-r"><p>\xf0\xd2\xc9\xd7\xc5\xd4</p>')
    for (const [codePage, html] of [
      [20866, koi8],
      [20127, own],
      [1252, Buffer.from('<p>Привет</p>')],
      [50220, latin1("<p>\x1b$B'1'b'Z'S'V'd\x1b(B</p>")],
    ] as const) {
      const properties = { '3FFD0003': 1252, '3FDE0003': codePage, '10130102': html }
      assert.equal((await readOutlook({ properties })).text, 'Привет')
    }
  })

  test('people and dates', async () => {
    const { text } = await readOutlook({
      properties: {
        ...NOTE,
        '0042001F': 'Boss',
        '0C1A001F': 'Clerk',
        '0C1F001F': '/o=Org/cn=clerk',
        '0E02001F': 'Hidden',
        '0050001F': 'Desk',
        '007D001F': 'Reply-To: Desk <desk@example.org>\r\nResent-From: r@example.org\r\n',
      },
    })
    assert.equal(
      text,
      'From: Boss\nSender: Clerk\nReply-To: Desk <desk@example.org>\nBcc: Hidden\nResent-From: r@example.org\n\nBody',
    )
  })
})

describe('envelopes', () => {
  const encode = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64')
  const attach = (type: string, name: string, bytes: Uint8Array): string =>
    `Content-Type: ${type}; name="${name}"\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment\n\n${encode(bytes)}`
  const TNEF = buildTnef([
    [0x00069007, Buffer.from('e404000000000000', 'hex')],
    [
      0x00069003,
      buildTnefProperties({ '0037001F': 'Sent', '8000001F': 'x', '1000001F': 'Tnef text' }).subarray(0, 0),
    ],
    [0x00069003, buildTnefProperties({ '0037001F': 'Sent', '1000001F': 'Tnef text' })],
    [0x00069002, Buffer.alloc(14)],
    [0x00018010, latin1('SHORT~1.TXT\0')],
    [0x0006800f, latin1('first')],
    [0x00069005, buildTnefProperties({ '3707001F': 'long name.txt' })],
    [0x00069002, Buffer.alloc(14)],
    [0x00018010, latin1('Geb\xfchren.txt\0')],
    [0x0006800f, latin1('second')],
  ])
  const FILES = [
    ['long name.txt', 'first'],
    ['Gebühren.txt', 'second'],
  ]

  test('winmail.dat in a mail and alone', async () => {
    const inMail = await readMail(
      buildParts('multipart/mixed', '\n', attach('application/ms-tnef', 'winmail.dat', TNEF)),
    )
    assert.match(inMail.text, /\n\nTnef text\n/)
    assert.deepEqual(inMail.files, FILES)
    const { type, texts, files } = await read(TNEF)
    assert.equal(type, 'application/vnd.ms-tnef')
    assert.match(texts[0]!, /^Subject: Sent\n\nTnef text\n\nAttachments:\n/)
    assert.deepEqual(files, FILES)
    const cut = await read(TNEF.subarray(0, -8))
    assert.deepEqual(cut.files[0], FILES[0])
    assert.equal((await read(TNEF.subarray(0, 8))).pages[0]!.detail, 'The mail is damaged')
  })

  test('the body of the mail stays, and messages inside of TNEF are read', async () => {
    const object = Buffer.concat([Buffer.alloc(16), TNEF])
    const outer = buildTnef([
      [0x00069002, Buffer.alloc(14)],
      [0x00069005, buildTnefProperties({ '3701000D': object })],
    ])
    const { text, files } = await readMail(
      buildParts('multipart/mixed', '\nOwn text', attach('application/octet-stream', 'winmail.dat', outer)),
    )
    assert.match(text, /Own text\n\nSubject: Sent\n\nTnef text/)
    assert.deepEqual(files, FILES)
  })

  const SIGNED = '1.2.840.113549.1.7.2'
  const ENTITY = 'Content-Type: text/plain; charset=utf-8\n\nSigned text'
  const buildSigned = (bytes: Uint8Array, name = 'smime.p7m'): string =>
    `${HEADERS}${attach('application/pkcs7-mime', name, bytes)}`

  test('signed and compressed mails', async () => {
    const cms = buildCms(SIGNED, latin1(ENTITY))
    const { text, files } = await readMail(buildSigned(cms))
    assert.deepEqual([text, files], [`${SHOWN}\n\nSigned text`, []])
    const packed = buildCms('1.2.840.113549.1.9.16.1.9', deflateSync(ENTITY))
    assert.equal((await readMail(buildSigned(packed))).text, `${SHOWN}\n\nSigned text`)
    const alone = await read(cms)
    assert.deepEqual([alone.type, alone.texts], ['application/pkcs7-mime', ['Signed text']])
  })

  test('a signed file becomes the attachment', async () => {
    const cms = buildCms(SIGNED, latin1('<Invoice/>'))
    const part = attach('application/octet-stream', 'IT01.xml.p7m', cms)
    const { files } = await readMail(buildParts('multipart/mixed', '\nHello', part))
    assert.deepEqual(files, [['IT01.xml', '<Invoice/>']])
  })

  test('encrypted mails say so, and damaged ones stay attachments', async () => {
    const sealed = buildCms('1.2.840.113549.1.7.3', latin1('x'))
    const { detail, files } = await readMail(buildSigned(sealed))
    assert.equal(detail, 'The content of the mail is encrypted')
    assert.equal(files[0]![0], 'smime.p7m')
    assert.equal((await read(sealed)).pages[0]!.detail, 'The content of the mail is encrypted')
    assert.equal((await readMail(buildSigned(latin1('0garbage')))).files.length, 1)
  })

  test('files in the body', async () => {
    const file = 'begin 644 a.txt\n#0V%T\n`\nend\n'
    const { text, files } = await readMail(`${HEADERS}\nHello\n\n${file}\nbegin 644 is no file\nat all`)
    assert.equal(text, `${SHOWN}\n\nHello\n\nbegin 644 is no file\nat all\n\nAttachments:\na.txt (3 bytes)`)
    assert.deepEqual(files, [['a.txt', 'Cat']])
  })

  test('signed Outlook mails', async () => {
    const properties = { '3707001F': 'smime.p7m', '37010102': buildCms(SIGNED, latin1(ENTITY)) }
    const note = { properties: { '001A001F': 'IPM.Note.SMIME' }, attachments: [{ properties }] }
    assert.deepEqual((await read(buildOutlookFile(note))).texts, ['Signed text'])
  })
})
