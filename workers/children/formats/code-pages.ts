import { decodeAs } from '../../../tasks/formats/decode.ts'
import { EXTRA_ENCODINGS } from '../../../tasks/formats/encodings.ts'

/** Maps code pages and locales to encodings that `decodeAs` knows. */

const ENCODINGS: ReadonlyMap<number, string> = new Map([
  [866, 'ibm866'],
  [874, 'windows-874'],
  [932, 'shift_jis'],
  [936, 'gb18030'],
  [949, 'euc-kr'],
  [950, 'big5'],
  [1200, 'utf-16le'],
  [1201, 'utf-16be'],
  [10000, 'macintosh'],
  [10006, 'macgreek'],
  [10007, 'x-mac-cyrillic'],
  [10010, 'macromania'],
  [10021, 'macthai'],
  [10029, 'maccenteuro'],
  [10079, 'maciceland'],
  [10081, 'macturkish'],
  [10082, 'maccroatian'],
  [20866, 'koi8-r'],
  [20932, 'euc-jp'],
  [20936, 'gb18030'],
  [20949, 'euc-kr'],
  [21866, 'koi8-u'],
  [38598, 'iso-8859-8-i'],
  [50220, 'iso-2022-jp'],
  [50221, 'iso-2022-jp'],
  [50222, 'iso-2022-jp'],
  [51932, 'euc-jp'],
  [51936, 'gb18030'],
  [51949, 'euc-kr'],
  [51950, 'big5'],
  [52936, 'gb18030'],
  [54936, 'gb18030'],
  [65001, 'utf-8'],
])

/** Returns the encoding of a code page; undefined for US-ASCII and for code pages that cannot be decoded. */
export function encodingOfCodePage(codePage: number | undefined): string | undefined {
  if (codePage === undefined) return undefined
  if (codePage >= 1250 && codePage <= 1258) return `windows-${codePage}`
  if (codePage >= 28591 && codePage <= 28606) return `iso-8859-${codePage - 28590}`
  const ofDos = `cp${codePage}`
  return EXTRA_ENCODINGS.has(ofDos) ? ofDos : ENCODINGS.get(codePage)
}

/** Decodes bytes of a code page. Unknown code pages count as windows-1252. */
export const decodeCodePage = (bytes: Uint8Array, codePage: number): string =>
  decodeAs(bytes, encodingOfCodePage(codePage) ?? 'windows-1252').text

// Code pages by primary language (MS-LCID). The others use windows-1252.
const LANGUAGES: ReadonlyMap<number, number> = new Map(
  Object.entries({
    874: [0x1e],
    932: [0x11],
    949: [0x12],
    1250: [0x05, 0x0e, 0x15, 0x18, 0x1a, 0x1b, 0x1c, 0x24],
    1251: [0x02, 0x19, 0x22, 0x23, 0x2f, 0x3f, 0x40, 0x44, 0x50],
    1253: [0x08],
    1254: [0x1f, 0x2c, 0x43],
    1255: [0x0d],
    1256: [0x01, 0x20, 0x29],
    1257: [0x25, 0x26, 0x27],
    1258: [0x2a],
  }).flatMap(([codePage, languages]) => languages.map((language) => [language, Number(codePage)] as const)),
)
const CHINESE = 0x04
// Mainland China and Singapore.
const SIMPLIFIED: readonly number[] = [0x0004, 0x0804, 0x1004]

/** Returns the encoding of non-Unicode text in a locale; undefined if the locale does not tell. */
export function encodingOfLocale(locale: number | undefined): string | undefined {
  if (locale === undefined) return undefined
  const language = locale & 0x3ff
  if (language === CHINESE) return SIMPLIFIED.includes(locale) ? 'gb18030' : 'big5'
  return encodingOfCodePage(LANGUAGES.get(language))
}
