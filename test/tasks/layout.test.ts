import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Piece, textFromPieces } from '../../workers/providers/layout.ts'
import { openPages } from '../../workers/providers/pages.ts'
import { rawPdf, sentences, stream } from '../pdfs.ts'

const piece = (text: string, start: number, base: number, more: Partial<Piece> = {}): Piece => ({
  text,
  start,
  base,
  end: start + text.length * 5,
  angle: 0,
  size: 10,
  endsLine: false,
  asIs: false,
  ...more,
})

const FONT = '/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>'
const left = sentences(8).map((line) => line.slice(0, 40).trimEnd())
const right = sentences(8, 50).map((line) => line.slice(0, 40).trimEnd())

test('columns that are written across the page are read one after the other', () => {
  const rows = left.flatMap((text, i) => [piece(text, 0, 700 - 12 * i), piece(right[i]!, 220, 700 - 12 * i)])
  const text = textFromPieces([piece('A headline over both of the columns of the page', 0, 730), ...rows])
  assert.equal(
    text,
    [`A headline over both of the columns of the page\n`, ...left, `\n${right[0]}`, ...right.slice(1)].join(
      '\n',
    ),
  )
})

test('columns that are written one after the other stay so', () => {
  const column = (lines: readonly string[], x: number) => lines.map((text, i) => piece(text, x, 700 - 12 * i))
  assert.equal(
    textFromPieces([...column(left, 0), ...column(right, 220)]),
    [...left, '', ...right].join('\n'),
  )
})

test('a table is read row by row', () => {
  const rows = ['Coal', 'Salt', 'Rope', 'Tar', 'Oil'].flatMap((name, i) => [
    piece(name, 0, 700 - 12 * i),
    piece(`${i} tons`, 100, 700 - 12 * i),
  ])
  assert.equal(textFromPieces(rows), 'Coal\t0 tons\nSalt\t1 tons\nRope\t2 tons\nTar\t3 tons\nOil\t4 tons')
})

test('two columns of a PDF, turned by every quarter', async () => {
  const lines = left.map(
    (text, i) => `1 0 0 1 40 ${700 - 14 * i} Tm (${text}) Tj 1 0 0 1 320 ${700 - 14 * i} Tm (${right[i]}) Tj`,
  )
  for (const turn of [0, 90, 180, 270]) {
    const pdf = rawPdf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Rotate ${turn} /Contents 4 0 R /Resources << /Font << /F1 <<` +
        ' /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>',
      stream(`BT /F1 10 Tf ${lines.join('\n')} ET`),
    ])
    const reader = await openPages(pdf, 'application/pdf', { vision: 'none' })
    const { text, image } = await reader.read(1)
    assert.equal(text, [...left, '', ...right].join('\n'), `turned by ${turn}`)
    assert.equal(image!.width < image!.height, turn % 180 === 0)
    await reader.close()
  }
})

/** A line of text that is itself turned on the page. */
test('lines that run upwards, downwards and askew are lines', async () => {
  for (const degrees of [0, 30, 90, 180, 270]) {
    const [cos, sin] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)]
    const at = (n: number) => [300 + n * 14 * sin, 400 - n * 14 * cos]
    const lines = ['The first of three lines', 'the second one', 'and the third'].map(
      (text, n) => `${[cos, sin, -sin, cos, ...at(n)].map((x) => x.toFixed(4)).join(' ')} Tm (${text}) Tj`,
    )
    const pdf = rawPdf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 <<' +
        ' /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>',
      stream(`BT /F1 10 Tf ${lines.join('\n')} ET`),
    ])
    const reader = await openPages(pdf, 'application/pdf', { vision: 'none' })
    const { text } = await reader.read(1)
    assert.equal(text, 'The first of three lines\nthe second one\nand the third', `turned by ${degrees}`)
    await reader.close()
  }
})

test('what is filled into a form is text of the page', async () => {
  const pdf = rawPdf([
    '<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [5 0 R] >> >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R /Annots [5 0 R] /Resources << ${FONT} >> >>`,
    stream('BT /F1 12 Tf 20 150 Td (Name:) Tj ET'),
    '<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Ada) /F 4 /Rect [80 140 300 165] /AP << /N 6 0 R >> >>',
    stream(
      'BT /F1 12 Tf 2 10 Td (Ada of the harbour) Tj ET',
      `/Type /XObject /Subtype /Form /BBox [0 0 220 25] /Resources << ${FONT} >>`,
    ),
  ])
  const reader = await openPages(pdf, 'application/pdf', { vision: 'none' })
  assert.match((await reader.read(1)).text, /^Name:\s+Ada of the harbour$/)
  await reader.close()
})

/** A page in a font whose codes stand for the given letters. */
function mappedPdf(letters: string, content: string): Uint8Array {
  const hex = (code: number, digits: number) => code.toString(16).padStart(digits, '0')
  const map = [...letters].map((letter, i) => `<${hex(0x41 + i, 2)}> <${hex(letter.codePointAt(0)!, 4)}>`)
  return rawPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    stream(content),
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>',
    stream(
      '/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /M def /CMapType 2 def' +
        ` 1 begincodespacerange <00> <ff> endcodespacerange ${map.length} beginbfchar\n${map.join('\n')}\n` +
        'endbfchar endcmap end end',
    ),
  ])
}

test('right-to-left text, which a page shows from left to right, comes in the order of reading', async () => {
  for (const lines of [
    ['שלום עולם טוב', 'ספר הים הגדול'],
    ['السلام عليكم', 'كتاب البحر'],
  ]) {
    const letters = [...new Set(lines.join('').replaceAll(' ', ''))].join('')
    const code = (letter: string) => (letter === ' ' ? '20' : (letters.indexOf(letter) + 0x41).toString(16))
    const shown = lines.map((line) => `<${[...line].reverse().map(code).join('')}> Tj 0 -30 Td`)
    const pdf = mappedPdf(letters, `BT /F1 20 Tf 20 150 Td ${shown.join(' ')} ET`)
    const reader = await openPages(pdf, 'application/pdf', { vision: 'none' })
    assert.equal((await reader.read(1)).text, lines.join('\n'))
    await reader.close()
  }
})
