import assert from 'node:assert/strict'
import { test } from 'node:test'
import { layOutWords } from '../../workers/children/ocr/ocr-words.ts'

/** The OCR engine reports words with positions, in Tesseract's TSV format. Text is built from these. */

type PlacedWord = readonly [text: string, left: number, width: number]

/** Builds TSV from lines that are 30 pixels apart, by default 20 pixels high. */
const createTsv = (lines: readonly (readonly PlacedWord[])[], height = 20): string =>
  lines
    .flatMap((words, n) => [
      [4, 1, 1, 1, n + 1, 0, 0, 30 * n, 2000, height, -1, ''],
      ...words.map(([text, left, width], i) => [
        5,
        1,
        1,
        1,
        n + 1,
        i + 1,
        left,
        30 * n,
        width,
        height,
        95,
        text,
      ]),
    ])
    .map((row) => row.join('\t'))
    .join('\n')

test('words form lines, with a tab for a gap in a table', () => {
  const { text, wordHeight } = layOutWords(
    createTsv([
      [
        ['Rope,', 0, 60],
        ['blue', 66, 40],
        ['84.50', 400, 60],
      ],
      [
        ['Chain', 0, 60],
        ['7.00', 410, 50],
      ],
    ]),
  )
  assert.equal(text, 'Rope, blue\t84.50\nChain\t7.00')
  assert.equal(wordHeight, 20)
})

test('text columns that a line crosses are read one after the other', () => {
  const line = (n: number): PlacedWord[] => [
    ['somewhat', 0, 120],
    [`longer${n}`, 128, 100],
    ['sentences', 260, 120],
    [`there${n}`, 388, 100],
  ]
  const { text } = layOutWords(createTsv([0, 1, 2, 3].map(line)))
  assert.deepEqual(text.split(/\n+/), [
    ...[0, 1, 2, 3].map((n) => `somewhat longer${n}`),
    ...[0, 1, 2, 3].map((n) => `sentences there${n}`),
  ])
})

test('East Asian characters are joined, and right-to-left words stay in order', () => {
  assert.equal(
    layOutWords(
      createTsv([
        [
          ['請', 0, 20],
          ['求', 21, 20],
          ['書', 42, 20],
          ['No', 70, 30],
        ],
        [
          ['שלום', 300, 80],
          ['עולם', 200, 80],
        ],
      ]),
    ).text,
    '請求書 No\nשלום עולם',
  )
})

test('a picture without words has no text', () => {
  assert.deepEqual(layOutWords(''), { text: '', wordHeight: 0 })
  assert.deepEqual(layOutWords(createTsv([[[' ', 0, 10]]])), { text: '', wordHeight: 0 })
})
