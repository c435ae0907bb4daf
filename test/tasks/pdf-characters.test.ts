import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPages } from '../../workers/children/documents/pages.ts'
import { buildMappedPdf, buildRawPdf, buildStreamObject } from '../pdfs.ts'

async function readText(pdf: Uint8Array): Promise<string> {
  const reader = await openPages(pdf, 'application/pdf', { ocrMode: 'none' })
  const { text } = await reader.read(1)
  await reader.close()
  return text
}

/** Builds a page in Helvetica whose accents are characters drawn over the letters, as TeX does. */
function createAccentsPdf(content: string): Uint8Array {
  return buildRawPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    buildStreamObject(content),
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica' +
      ' /Encoding << /BaseEncoding /WinAnsiEncoding /Differences [157 /dotlessi 159 /caron] >> >>',
  ])
}

test('accents drawn over letters are composed with them', async () => {
  // The offsets centre an accent of width 333 over letters of widths 556, 500 and 278.
  const shown =
    '[(J)-111.5(\\264)444.5(an)-278(Min)-111.5(\\264)444.5(a)-83.5(\\237)416.5(c)-278(na)27.5(\\250)305.5(\\235)(ve)' +
    '-278(gar)-83.5(\\270)416.5(con)-278(\\264quoted\\264)] TJ'
  assert.equal(
    await readText(createAccentsPdf(`BT /F1 12 Tf 20 150 Td ${shown} ET`)),
    'Ján Mináč naïve garçon ´quoted´',
  )
})

test('an accent over a capital letter, which follows its line, is composed with it', async () => {
  const line = '1 0 0 1 20 150 Tm (Etienne and Anna) Tj'
  assert.equal(
    await readText(createAccentsPdf(`BT /F1 12 Tf ${line} 1 0 0 1 22 153 Tm (\\264) Tj ET`)),
    'Étienne and Anna',
  )
})

test('an Arabic ligature is split into its letters in order', async () => {
  // The page shows, from the left: nun, alef, the ligature of lam and alef with hamza below, alef.
  for (const ligature of ['لإ', '\ufef9']) {
    const letters = ['ن', 'ا', ligature]
    assert.equal(await readText(buildMappedPdf(letters, 'BT /F1 20 Tf 20 150 Td (ABCB) Tj ET')), 'الإان')
  }
})

test('a separate Arabic vowel joins the letter below it', async () => {
  // Word writes a vowel as this character followed by a space.
  const letters = ['ا', 'ض', 'ي', 'أ', '\u064b ']
  const content =
    'BT /F1 20 Tf 20 150 Td (A) Tj 13.34 0 Td (B) Tj 13.34 0 Td (CD) Tj 1 0 0 1 34 149 Tm (E) Tj ET'
  assert.equal(await readText(buildMappedPdf(letters, content)), 'أيضًا')
})

test('Latin words within Arabic text are separate words', async () => {
  // In right-to-left text, a Latin word has its space on the right.
  const letters = ['م', 'ن', 'و', 'P', 'y']
  assert.equal(await readText(buildMappedPdf(letters, 'BT /F1 20 Tf 20 150 Td (BADE C) Tj ET')), 'و Py من')
})

test('a Thai mark that the file sets apart joins the letter before it', async () => {
  const letters = ['ต', '\u0e31', '\u0e49', 'ง', 'อ']
  const content =
    'BT /F1 20 Tf 20 150 Td (A) Tj 1 0 0 1 44 150 Tm (B) Tj 1 0 0 1 70 150 Tm (C) Tj 1 0 0 1 84 150 Tm (DE) Tj ET'
  assert.equal((await readText(buildMappedPdf(letters, content))).split(/\s/)[0]!.slice(0, 3), 'ตั้')
})

test('letters that are drawn again in their place, to look bold, are read once', async () => {
  const font = (name: string): string => `<< /Type /Font /Subtype /Type1 /BaseFont /${name} >>`
  const draw = (name: string, shift: number): string =>
    `BT /${name} 12 Tf 1 0 0 1 ${20 + shift} 150 Tm ${[...'harbour coffee 1100'].map((letter) => `(${letter}) Tj 7.2 0 Td`).join(' ')} ET`
  for (const content of [
    `${draw('F1', 0)} ${draw('F2', 0.4)}`,
    `${draw('F1', 0)} ${draw('F2', 0)} ${draw('F1', 0.3)}`,
    draw('F1', 0),
  ]) {
    const pdf = buildRawPdf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R /F2 6 0 R >> >> >>',
      buildStreamObject(content),
      font('Courier'),
      font('Courier-Bold'),
    ])
    assert.equal(await readText(pdf), 'harbour coffee 1100')
  }
})
