/** Arranges the words and positions from the OCR engine into lines, columns and paragraphs. */
import { type Piece, textFromPieces } from '../pdf/layout.ts'

interface Word {
  readonly text: string
  readonly left: number
  readonly right: number
  readonly height: number
  /** Key of the word's line: page, block, paragraph and line numbers. `lineHeight` and `bottom` describe that whole line. */
  readonly line: string
  readonly lineHeight: number
  readonly bottom: number
}

const LINE_LEVEL = '4'
const WORD_LEVEL = '5'

/** Converts Tesseract's TSV to text. `wordHeight` is the median height of the words in pixels; 0 if there are none. */
export function layOutWords(tsv: string): { text: string; wordHeight: number } {
  const words = parseWords(tsv)
  const heights = words.filter(({ text }) => /[\p{L}\p{N}]{2}/u.test(text)).map(({ height }) => height)
  return {
    text: textFromPieces(words.map((word, i) => pieceOf(word, words[i + 1]))),
    wordHeight: heights.sort((a, b) => a - b)[heights.length >> 1] ?? 0,
  }
}

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

function pieceOf({ text, left, right, line, lineHeight, bottom }: Word, next: Word | undefined): Piece {
  const isJoined =
    next !== undefined &&
    UNSPACED_SCRIPT_END_PATTERN.test(text) &&
    UNSPACED_SCRIPT_START_PATTERN.test(next.text)
  return {
    text: isJoined ? text : `${text} `,
    angle: 0,
    start: left,
    end: right,
    base: -bottom,
    size: lineHeight,
    endsLine: next?.line !== line,
    ignoresGap: RIGHT_TO_LEFT_PATTERN.test(text),
  }
}
