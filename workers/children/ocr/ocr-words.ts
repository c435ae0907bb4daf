/** Arranges the words and positions from the OCR engine into lines, columns and paragraphs. */
import type { PlacedWord } from '../../../tasks/context.ts'
import { MAX_PLACED_WORDS, placeWord } from '../documents/placed-words.ts'
import { type Piece, textFromPieces } from '../pdf/layout.ts'

interface Word {
  readonly text: string
  readonly left: number
  readonly right: number
  readonly top: number
  readonly height: number
  /** Key of the word's line: page, block, paragraph and line numbers. `lineHeight` and `bottom` describe that whole line. */
  readonly line: string
  readonly lineHeight: number
  readonly bottom: number
}

const LINE_LEVEL = '4'
const WORD_LEVEL = '5'

interface LaidOutWords {
  readonly text: string
  /** The words with their places on the picture. */
  readonly words: readonly PlacedWord[]
  /** Median height of the words in pixels; 0 if there are none. */
  readonly wordHeight: number
}

/** Converts Tesseract's TSV of a picture to text. */
export function layOutWords(
  tsv: string,
  picture: { readonly width: number; readonly height: number },
): LaidOutWords {
  const words = parseWords(tsv)
  const heights = words.filter(({ text }) => /[\p{L}\p{N}]{2}/u.test(text)).map(({ height }) => height)
  return {
    text: textFromPieces(words.map((word, i) => pieceOf(word, words[i + 1]))),
    words: joinCharacters(words)
      .slice(0, MAX_PLACED_WORDS)
      .map((word) => placeIn(picture, word)),
    wordHeight: heights.sort((a, b) => a - b)[heights.length >> 1] ?? 0,
  }
}

/** Joins the characters of an East Asian script in a line, which the engine reports as words. */
function joinCharacters(words: readonly Word[]): Word[] {
  const joined: Word[] = []
  for (const word of words) {
    const last = joined.at(-1)
    if (last === undefined || last.line !== word.line || !isUnspaced(last, word)) joined.push(word)
    else joined[joined.length - 1] = joinWords(last, word)
  }
  return joined
}

function joinWords(first: Word, second: Word): Word {
  const top = Math.min(first.top, second.top)
  return {
    ...first,
    text: first.text + second.text,
    left: Math.min(first.left, second.left),
    right: Math.max(first.right, second.right),
    top,
    height: Math.max(first.top + first.height, second.top + second.height) - top,
  }
}

const placeIn = (
  { width, height }: { readonly width: number; readonly height: number },
  word: Word,
): PlacedWord =>
  placeWord(word.text, {
    left: word.left / width,
    top: word.top / height,
    right: word.right / width,
    bottom: (word.top + word.height) / height,
  })

/**
 * Parses the words of a TSV with the columns level, page, block, paragraph, line, word, left, top, width, height,
 * confidence, text.
 */
function parseWords(tsv: string): Word[] {
  const words: Word[] = []
  let lineHeight = 0
  let bottom = 0
  for (const row of tsv.split('\n')) {
    const [level, page, block, paragraph, line, , left, top, width, height, , text = ''] = row.split('\t')
    if (level === LINE_LEVEL) {
      lineHeight = Number(height)
      bottom = Number(top) + lineHeight
    } else if (level === WORD_LEVEL && text.trim() !== '')
      words.push({
        text: text.trim(),
        left: Number(left),
        right: Number(left) + Number(width),
        top: Number(top),
        height: Number(height),
        line: [page, block, paragraph, line].join(),
        lineHeight,
        bottom,
      })
  }
  return words
}

const RIGHT_TO_LEFT_PATTERN = /[\u0590-\u08ff]/
// Matches text that ends in an East Asian script: the engine reports each of its characters as a word.
const UNSPACED_SCRIPT_END_PATTERN = /[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]$/
const UNSPACED_SCRIPT_START_PATTERN = /^[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]/

const isUnspaced = (word: Word, next: Word): boolean =>
  UNSPACED_SCRIPT_END_PATTERN.test(word.text) && UNSPACED_SCRIPT_START_PATTERN.test(next.text)

function pieceOf(word: Word, next: Word | undefined): Piece {
  const { text, left, right, line, lineHeight, bottom } = word
  return {
    text: next !== undefined && isUnspaced(word, next) ? text : `${text} `,
    angle: 0,
    start: left,
    end: right,
    base: -bottom,
    size: lineHeight,
    endsLine: next?.line !== line,
    ignoresGap: RIGHT_TO_LEFT_PATTERN.test(text),
  }
}
