import assert from 'node:assert/strict'
import { test } from 'node:test'
import { layOutWords } from '../../workers/children/ocr/ocr-words.ts'

/** The OCR engine reports words with positions, in Tesseract's TSV format. Text is built from these. */

type PlacedWord = readonly [text: string, left: number, width: number]

const PICTURE = { width: 2000, height: 1000 }
const layOut = (tsv: string) => layOutWords(tsv, PICTURE)

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
  const { text, wordHeight, words } = layOut(
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
  assert.deepEqual(
    words.map((word) => word.text),
    ['Rope,', 'blue', '84.50', 'Chain', '7.00'],
  )
  assert.deepEqual(words.at(-1), { text: '7.00', left: 0.205, top: 0.03, width: 0.025, height: 0.02 })
})

test('text columns that a line crosses are read one after the other', () => {
  const line = (n: number): PlacedWord[] => [
    ['somewhat', 0, 120],
    [`longer${n}`, 128, 100],
    ['sentences', 260, 120],
    [`there${n}`, 388, 100],
  ]
  const { text } = layOut(createTsv([0, 1, 2, 3].map(line)))
  assert.deepEqual(text.split(/\n+/), [
    ...[0, 1, 2, 3].map((n) => `somewhat longer${n}`),
    ...[0, 1, 2, 3].map((n) => `sentences there${n}`),
  ])
})

test('East Asian characters are joined, and right-to-left words stay in order', () => {
  const { text, words } = layOut(
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
  )
  assert.equal(text, '請求書 No\nשלום עולם')
  assert.deepEqual(
    words.map((word) => [word.text, word.left, word.width]),
    [
      ['請求書', 0, 0.031],
      ['No', 0.035, 0.015],
      ['שלום', 0.15, 0.04],
      ['עולם', 0.1, 0.04],
    ],
  )
})

test('a picture without words has no text', () => {
  const nothing = { text: '', words: [], wordHeight: 0 }
  assert.deepEqual(layOut(''), nothing)
  assert.deepEqual(layOut(createTsv([[[' ', 0, 10]]])), nothing)
})
