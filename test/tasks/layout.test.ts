import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPages } from '../../workers/children/documents/pages.ts'
import { type Piece, textFromPieces } from '../../workers/children/pdf/layout.ts'
import { isUnmapped } from '../../workers/children/pdf/pdfium-glyphs.ts'
import { buildMappedPdf, buildRawPdf, buildStreamObject, createSentences } from '../pdfs.ts'

const createPiece = (text: string, start: number, base: number, more: Partial<Piece> = {}): Piece => ({
  text,
  start,
  base,
  end: start + text.length * 5,
  angle: 0,
  size: 10,
  endsLine: false,
  ignoresGap: false,
  ...more,
})

const FONT = '/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>'
const left = createSentences(8).map((line) => line.slice(0, 40).trimEnd())
const right = createSentences(8, 50).map((line) => line.slice(0, 40).trimEnd())

test('columns that are written row by row are read one after the other', () => {
  const rows = left.flatMap((text, i) => [
    createPiece(text, 0, 700 - 12 * i),
    createPiece(right[i]!, 220, 700 - 12 * i),
  ])
  const text = textFromPieces([
    createPiece('A headline over both of the columns of the page', 0, 730),
    ...rows,
  ])
  assert.equal(
    text,
    [`A headline over both of the columns of the page\n`, ...left, `\n${right[0]}`, ...right.slice(1)].join(
      '\n',
    ),
  )
})

test('columns that are written one after the other stay in order', () => {
  const column = (lines: readonly string[], x: number) =>
    lines.map((text, i) => createPiece(text, x, 700 - 12 * i))
  assert.equal(
    textFromPieces([...column(left, 0), ...column(right, 220)]),
    [...left, '', ...right].join('\n'),
  )
})

test('a table is read row by row', () => {
  const rows = ['Coal', 'Salt', 'Rope', 'Tar', 'Oil'].flatMap((name, i) => [
    createPiece(name, 0, 700 - 12 * i),
    createPiece(`${i} tons`, 100, 700 - 12 * i),
  ])
  assert.equal(textFromPieces(rows), 'Coal\t0 tons\nSalt\t1 tons\nRope\t2 tons\nTar\t3 tons\nOil\t4 tons')
})

test('two columns of a PDF page are read at every quarter turn', async () => {
  const lines = left.map(
    (text, i) => `1 0 0 1 40 ${700 - 14 * i} Tm (${text}) Tj 1 0 0 1 320 ${700 - 14 * i} Tm (${right[i]}) Tj`,
  )
  for (const turn of [0, 90, 180, 270]) {
    const pdf = buildRawPdf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Rotate ${turn} /Contents 4 0 R /Resources << /Font << /F1 <<` +
        ' /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>',
      buildStreamObject(`BT /F1 10 Tf ${lines.join('\n')} ET`),
    ])
    const reader = await openPages(pdf, 'application/pdf', { ocrMode: 'none' })
    const { text, image } = await reader.read(1)
    assert.equal(text, [...left, '', ...right].join('\n'), `turned by ${turn}`)
    assert.equal(image!.width < image!.height, turn % 180 === 0)
    await reader.close()
  }
})

/** The lines are rotated here, not the page. */
test('upward, downward and slanted lines are read as lines', async () => {
  for (const degrees of [0, 30, 90, 180, 270]) {
    const [cos, sin] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)]
    const at = (n: number) => [300 + n * 14 * sin, 400 - n * 14 * cos]
    const lines = ['The first of three lines', 'the second one', 'and the third'].map(
      (text, n) => `${[cos, sin, -sin, cos, ...at(n)].map((x) => x.toFixed(4)).join(' ')} Tm (${text}) Tj`,
    )
    const pdf = buildRawPdf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 <<' +
        ' /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>',
      buildStreamObject(`BT /F1 10 Tf ${lines.join('\n')} ET`),
    ])
    const reader = await openPages(pdf, 'application/pdf', { ocrMode: 'none' })
    const { text } = await reader.read(1)
    assert.equal(text, 'The first of three lines\nthe second one\nand the third', `turned by ${degrees}`)
    await reader.close()
  }
})

test("values of form fields are part of the page's text", async () => {
  const pdf = buildRawPdf([
    '<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [5 0 R] >> >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R /Annots [5 0 R] /Resources << ${FONT} >> >>`,
    buildStreamObject('BT /F1 12 Tf 20 150 Td (Name:) Tj ET'),
    '<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Ada) /F 4 /Rect [80 140 300 165] /AP << /N 6 0 R >> >>',
    buildStreamObject(
      'BT /F1 12 Tf 2 10 Td (Ada of the harbour) Tj ET',
      `/Type /XObject /Subtype /Form /BBox [0 0 220 25] /Resources << ${FONT} >>`,
    ),
  ])
  const reader = await openPages(pdf, 'application/pdf', { ocrMode: 'none' })
  assert.match((await reader.read(1)).text, /^Name:\s+Ada of the harbour$/)
  await reader.close()
})

const WIDGET = '/Type /Annot /Subtype /Widget /F 4 /DA (/F1 12 Tf 0 g)'

/** Builds a page with this content and these form fields. Its `objects` are numbered from 5 + the number of fields. */
function createFormPdf(
  content: string,
  fields: readonly string[],
  objects: readonly Uint8Array[] = [],
  rotate = 0,
) {
  const numbers = fields.map((_, i) => `${5 + i} 0 R`).join(' ')
  return buildRawPdf([
    `<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [${numbers}] /DR << ${FONT} >> >> >>`,
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Rotate ${rotate} /Contents 4 0 R /Annots [${numbers}]` +
      ` /Resources << ${FONT} >> >>`,
    buildStreamObject(content),
    ...fields.map((field, i) => `<< ${WIDGET} /T (field ${i}) ${field} >>`),
    ...objects,
  ])
}

const readText = async (pdf: Uint8Array): Promise<string> => {
  const reader = await openPages(pdf, 'application/pdf', { ocrMode: 'none' })
  const { text } = await reader.read(1)
  await reader.close()
  return text
}

test('a field without an appearance is read as viewers show it, without passwords and hidden ones', async () => {
  const fields = [
    '/FT /Tx /V (Ada of the harbour) /Rect [80 140 300 165]',
    '/FT /Ch /V <FEFF00440165> /Rect [80 110 300 135]',
    '/FT /Btn /V /Chosen /Rect [80 90 100 105]',
    '/FT /Tx /Ff 8192 /V (secret) /Rect [80 60 300 85]',
    '/FT /Tx /F 2 /V (unseen) /Rect [80 30 300 55]',
  ]
  const content = 'BT /F1 12 Tf 20 150 Td (Name:) Tj ET'
  assert.equal(await readText(createFormPdf(content, fields)), 'Name: Ada of the harbour\nD\u0165\n☑')
  const turned = 'BT /F1 12 Tf 0 1 -1 0 40 20 Tm (Name of the reader:) Tj ET'
  assert.deepEqual((await readText(createFormPdf(turned, fields))).split(/\n+/), [
    'Ada of the harbour',
    'D\u0165',
    '☑',
    'Name of the reader:',
  ])
})

test('words of fields below one another stay separate', async () => {
  const appearance = (text: string) =>
    buildStreamObject(
      `BT /F1 10 Tf 2 5 Td (${text}) Tj ET`,
      `/Type /XObject /Subtype /Form /BBox [0 0 80 20] /Resources << ${FONT} >>`,
    )
  const fields = [
    '/FT /Tx /V (six) /Rect [157 156 237 176] /AP << /N 7 0 R >>',
    '/FT /Tx /V (elephant) /Rect [158 110 238 130] /AP << /N 8 0 R >>',
  ]
  const text = await readText(
    createFormPdf('BT /F1 12 Tf 20 20 Td (Below) Tj ET', fields, [appearance('six'), appearance('elephant')]),
  )
  assert.deepEqual(text.split(/\s+/).sort(), ['Below', 'elephant', 'six'])
})

test('a narrow gap separates words without spaces, and spaced-out letters are one word', async () => {
  // In Helvetica at 12 points, each word begins 1.5 points after the end of the previous one.
  const words = [
    ['Samuel', 40.7],
    ['Cleveland', 54.0],
    ['passed', 40.0],
  ] as const
  let x = 20
  const shown = words.map(([word, width]) => {
    const at = x
    x += width + 1.5
    return `1 0 0 1 ${at} 150 Tm (${word}) Tj`
  })
  const wide = `1 0 0 1 20 120 Tm (His) Tj 1 0 0 1 60 120 Tm (wife) Tj 1 0 0 1 120 120 Tm 2 Tc (returned) Tj`
  const pdf = createFormPdf(`BT /F1 12 Tf ${shown.join(' ')} ${wide} ET`, [])
  assert.equal(await readText(pdf), 'Samuel Cleveland passed\nHis wife returned')
})

test('a font that maps its glyphs to no characters leaves the page to OCR', () => {
  const isUnread = (text: string): boolean => isUnmapped(codesOf(text))
  assert.equal(
    isUnread(`${'A page of ordinary text, \u0002'.repeat(9)} and one bullet \0 that has no name`),
    false,
  )
  assert.equal(isUnread('\u0001\u0004\u0011\b'), true)
  assert.equal(isUnread(`${'Languages that are '.repeat(20)}Di\0erent`), true)
})

const codesOf = (text: string): number[] => Array.from({ length: text.length }, (_, i) => text.charCodeAt(i))

test('vertical Japanese is one line, but a list of short entries is not', () => {
  const standing = (text: string, x: number, step = 10) =>
    [...text].map((letter, i) => createPiece(letter, x, 700 - step * i, { end: x + 10, endsLine: true }))
  assert.equal(
    textFromPieces([
      ...standing('\u7b2c\u4e8c\u6761\u306e\u8868', 300),
      ...standing('\u3053\u306e\u6761', 280),
    ]),
    '\u7b2c\u4e8c\u6761\u306e\u8868\n\u3053\u306e\u6761',
  )
  assert.equal(textFromPieces(standing('\u4e00\u4e8c\u4e09', 300, 16)), '\u4e00\n\u4e8c\n\u4e09')
})

test('vertical lines are read from the right, tier by tier, whatever their order in the file', async () => {
  const column = (text: string, x: number, y: number) => {
    const codes = [...text].map((letter) => letter.charCodeAt(0).toString(16).padStart(4, '0'))
    return `BT /F1 12 Tf 1 0 0 1 ${x} ${y} Tm <${codes.join('')}> Tj ET`
  }
  const [first, second, third] = ['吾輩は猫である。', '名前はまだ無い。', 'どこで生れたか']
  for (const order of [(all: string[]) => all, (all: string[]) => all.toReversed()]) {
    const content = order([column(first, 250, 380), column(second, 230, 368), column(third, 250, 200)])
    const pdf = buildRawPdf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 400] /Contents 4 0 R /Resources << /Font << /F1 <<' +
        ' /Type /Font /Subtype /Type0 /BaseFont /HeiseiMin-W3 /Encoding /UniJIS-UCS2-V /DescendantFonts [<<' +
        ' /Type /Font /Subtype /CIDFontType0 /BaseFont /HeiseiMin-W3 /DW 1000 /CIDSystemInfo <<' +
        ' /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >> >>] >> >> >> >>',
      buildStreamObject(content.join('\n')),
    ])
    assert.deepEqual((await readText(pdf)).split(/\n+/), [first, second, third])
  }
})

test('a form on a rotated page is read from the top', async () => {
  const values = ['First of all', 'Second to that', 'Third in line', 'Fourth and last']
  const fields = values.map(
    (text, i) =>
      `/FT /Tx /V (${text}) /Rect [20 ${150 - 30 * i} 180 ${170 - 30 * i}] /AP << /N ${9 + i} 0 R >>`,
  )
  const appearances = values.map((text) =>
    buildStreamObject(
      `BT /F1 10 Tf 2 5 Td (${text}) Tj ET`,
      `/Type /XObject /Subtype /Form /BBox [0 0 160 20] /Resources << ${FONT} >>`,
    ),
  )
  for (const rotate of [0, 90, 180, 270])
    assert.deepEqual(
      (await readText(createFormPdf('', fields, appearances, rotate))).split(/\n+/),
      values,
      `turned by ${rotate}`,
    )
})

test('text over the end of a word does not join it', () => {
  assert.equal(
    textFromPieces([
      createPiece('Original', 0, 700),
      createPiece('Page', 5, 700),
      createPiece('\u00e9', 22, 700),
    ]),
    'Original Page\u00e9',
  )
})

test('right-to-left text is read in logical order', async () => {
  for (const lines of [
    ['שלום עולם טוב', 'ספר הים הגדול'],
    ['السلام عليكم', 'كتاب البحر'],
  ]) {
    const letters = [...new Set(lines.join('').replaceAll(' ', ''))].join('')
    const code = (letter: string) => (letter === ' ' ? '20' : (letters.indexOf(letter) + 0x41).toString(16))
    const shown = lines.map((line) => `<${[...line].reverse().map(code).join('')}> Tj 0 -30 Td`)
    const pdf = buildMappedPdf([...letters], `BT /F1 20 Tf 20 150 Td ${shown.join(' ')} ET`)
    const reader = await openPages(pdf, 'application/pdf', { ocrMode: 'none' })
    assert.equal((await reader.read(1)).text, lines.join('\n'))
    await reader.close()
  }
})
