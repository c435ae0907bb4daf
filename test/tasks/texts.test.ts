import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { encode } from 'iconv-lite'
import { sniffMediaType } from '../../tasks/documents/media.ts'
import { openPages, type PageResult } from '../../workers/children/documents/pages.ts'

/** Text files as documents: their encodings and pages. */

interface ReadText {
  readonly pages: readonly PageResult[]
  readonly encoding: string | null
}

async function readFile(
  bytes: Uint8Array | string,
  fileName: string,
  encoding: string | null = null,
): Promise<ReadText> {
  const file = Buffer.from(bytes)
  const reader = await openPages(new Uint8Array(file), await sniffMediaType(file, { fileName }), {
    ocrMode: 'none',
    encoding,
    fileName,
  })
  const pages: PageResult[] = []
  for (let n = 1; n <= reader.pageCount; n++) pages.push(await reader.read(n))
  await reader.close()
  return { pages, encoding: reader.encoding }
}

const readTexts = async (...args: Parameters<typeof readFile>): Promise<readonly string[]> =>
  (await readFile(...args)).pages.map(({ text }) => text)

const RUSSIAN = 'Договор поставки товара. Покупатель обязуется оплатить товар.\n'

describe('text files', () => {
  test('are read in any encoding, and say which', async () => {
    for (const [text, name, encoding] of [
      [RUSSIAN, 'windows-1251', 'windows-1251'],
      [RUSSIAN, 'cp866', 'ibm866'],
      ['品名,数量,金額\nりんご,3,450\nみかん,5,600\n', 'shift_jis', 'shift_jis'],
      ['Käufer;Ort\nMüller;Köln\nGrößmann;Fürth\n', 'cp850', 'cp437'],
      ['Grüße', 'utf-8', 'utf-8'],
    ] as const) {
      const read = await readFile(encode(text, name), 'a.csv')
      assert.deepEqual([read.pages[0]!.text, read.encoding], [text, encoding], name)
    }
    assert.deepEqual(await readTexts(Buffer.from('Walrus;12\r\n', 'utf16le'), 'a.csv'), ['Walrus;12\n'])
    assert.deepEqual(await readTexts('a line of a log\0\0 and more\n', 'a.log'), [
      'a line of a log and more\n',
    ])
  })

  test('are unread if nothing tells their encoding, and read if the caller names it', async () => {
    const short = encode('عقد', 'windows-1256')
    const { pages, encoding } = await readFile(short, 'a.txt')
    assert.deepEqual([pages[0]!.status, pages[0]!.text, encoding], ['unread', '', null])
    assert.match(pages[0]!.detail!, /encoding of the text is unknown; extract it again with `encoding`/)
    assert.deepEqual(await readTexts(short, 'a.txt', 'windows-1256'), ['عقد'])
    const wrong = await readFile(encode(RUSSIAN, 'koi8-r'), 'a.txt', 'utf-8')
    assert.equal(wrong.pages[0]!.detail, 'The text is not in the encoding utf-8')
  })

  test('have a page for each form feed', async () => {
    assert.deepEqual(await readTexts('Page one\n\fPage two\n\fPage three\n\f', 'print.txt'), [
      'Page one\n',
      'Page two\n',
      'Page three\n',
    ])
    assert.deepEqual(await readTexts('\fone\n', 'a.txt'), ['\none\n'])
  })

  test('of HTML may declare their encoding late, or not at all', async () => {
    const late = `<html><head><!-- ${'x'.repeat(3000)} --><meta charset=koi8-u></head><body>Привіт</body></html>`
    assert.deepEqual(await readTexts(encode(late, 'koi8-u'), 'a.html'), ['Привіт'])
    const none = `<table><tr><td>${RUSSIAN}</td></tr></table>`
    assert.match((await readTexts(encode(none, 'windows-1251'), 'export.xls'))[0]!, /^Договор поставки/)
    const example = '<!-- <meta charset=koi8-r> --><meta charset=windows-1253><p>Αθήνα'
    assert.deepEqual(await readTexts(encode(example, 'windows-1253'), 'a.html'), ['Αθήνα'])
  })

  test('of XML are decoded as they declare', async () => {
    const xml = '<?xml version="1.0" encoding="windows-1251"?><letter><to>Иван</to></letter>'
    assert.deepEqual(await readTexts(encode(xml, 'windows-1251'), 'a.xml'), ['to: Иван'])
  })

  test('of drawings give their words alone', async () => {
    const svg = `<svg xmlns="http://www.w3.org/2000/svg"><style>text{fill:red}</style><title>Invoice</title><path d="M0 0L1 1"/>
      <g><text x="1" y="20">Invoice <tspan font-weight="bold">walrus</tspan></text><text y="40"><tspan x="1" y="40">Penguin</tspan><tspan x="1" dy="10">total</tspan></text></g></svg>`
    assert.deepEqual(await readTexts(svg, 'x.svg'), ['Invoice\nInvoice walrus\nPenguin\ntotal'])
  })

  test('of address cards may be quoted-printable', async () => {
    const card = (...lines: string[]) =>
      `BEGIN:VCARD\r\nVERSION:2.1\r\n${lines.join('\r\n')}\r\nEND:VCARD\r\n`
    const texts = await readTexts(
      card(
        'N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;Hans',
        'NOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=windows-1251:=CF=F0=E8=\r\n=E2=E5=F2=0D=0Amore',
        'TEL;CELL:1234=',
      ),
      'a.vcf',
    )
    assert.match(texts[0]!, /^N:Müller;Hans$/m)
    assert.match(texts[0]!, /^NOTE:Привет\nmore$/m)
    assert.match(texts[0]!, /^TEL;CELL:1234=$/m)
    assert.match((await readTexts(Buffer.from(card('FN:Jürgen'), 'utf16le'), 'a.vcf'))[0]!, /^FN:Jürgen$/m)
    assert.match(
      (await readTexts(encode(card('FN:Jürgen', 'ORG:Köln'), 'latin1'), 'a.vcf'))[0]!,
      /^FN:Jürgen\nORG:Köln$/m,
    )
  })
})

test('other files say in plain words why they are unread', async () => {
  for (const [bytes, fileName, start] of [
    [
      Uint8Array.from({ length: 512 }, (_, i) => (i * 7919 + ((i * i) >> 3)) & 0xff),
      'plan.dwg',
      'Files of an unknown kind (.dwg) cannot',
    ],
    [Buffer.from('504b030414000000080000000000', 'hex'), 'all.zip', 'Archives (.zip) cannot'],
    [Buffer.from('504b030414000000080000000000', 'hex'), 'all', 'Archives (.zip) cannot'],
  ] as const) {
    const { detail, status } = (await readFile(bytes, fileName)).pages[0]!
    assert.equal(status, 'unread')
    assert.ok(detail!.startsWith(start), `${detail}`)
    assert.match(detail!, /; readable are PDF, pictures .* all texts$/)
  }
})
