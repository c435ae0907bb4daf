import { decodeAs } from '../../../tasks/formats/decode.ts'
import { Unreadable } from '../images/images.ts'
import { decodeCodePage, encodingOfLocale } from './code-pages.ts'
import { listPieces } from './legacy-word-pieces.ts'
import { findFontCodePage } from './rtf-words.ts'

/** Reads the text of Word 6 and 95, which is in a code page. Properties of the text are not read. */

export const OLD_IDENTIFIER = 0xa5dc
/** Place of the lengths of the parts of the text. */
export const OLD_LENGTHS_AT = 0x34
const LOCALE_AT = 0x06
const FLAGS_AT = 0x0a
const IS_IN_PIECES = 0x0004
const HAS_WIDE_CHARACTERS = 0x1000
const TEXT_AT = 0x18
const PIECES_AT = 0x160
const FONTS_AT = 0xd0
const INFORMATION_BYTES = 0x168
const CELL_END = '\x07'
const ROW_END = new RegExp(`${CELL_END}{2}(?!${CELL_END})`, 'g')

/** Assembles the text, with its control characters. @throws Unreadable for texts of two bytes per character. */
export function assembleOldText(main: Buffer): string {
  if (main.length < INFORMATION_BYTES) throw new Error('The document is cut off')
  const flags = main.readUInt16LE(FLAGS_AT)
  if ((flags & HAS_WIDE_CHARACTERS) !== 0)
    throw new Unreadable('Documents of East Asian editions of Word 95 or older cannot be read')
  const text = decodeOld(main, takeBytes(main, (flags & IS_IN_PIECES) !== 0))
  // The mark that ends a row follows that of its last cell.
  return text.replace(ROW_END, `${CELL_END}\n`)
}

function takeBytes(main: Buffer, isInPieces: boolean): Buffer {
  if (!isInPieces) return main.subarray(main.readUInt32LE(TEXT_AT), main.readUInt32LE(TEXT_AT + 4))
  const pieces = [...listPieces(main, main, main.readUInt32LE(PIECES_AT))]
  // The bit that tells the width in later versions does not exist.
  return Buffer.concat(pieces.map(({ at, length }) => main.subarray(at, at + length)))
}

/** Decodes by the character set of a font, or else by the language of the document. */
function decodeOld(main: Buffer, bytes: Buffer): string {
  const codePage = findCodePage(main)
  if (codePage !== undefined) return decodeCodePage(bytes, codePage)
  return decodeAs(bytes, encodingOfLocale(main.readUInt16LE(LOCALE_AT)) ?? 'windows-1252').text
}

/** Returns the code page of the first font whose character set has one. */
function findCodePage(main: Buffer): number | undefined {
  const from = main.readUInt32LE(FONTS_AT)
  const fonts = main.subarray(from + 2, from + main.readUInt32LE(FONTS_AT + 4))
  // The first byte of a font is the length of the others; the fifth is its character set.
  for (let at = 0; at + 5 <= fonts.length; at += fonts[at]! + 1) {
    const codePage = findFontCodePage(fonts[at + 4]!)
    if (codePage !== undefined) return codePage
  }
  return undefined
}
