import { decodeLatin1 } from '../documents/texts.ts'
import { createPagedText, PageCollector, type PagedText } from './texts.ts'

/** Opens documents in Rich Text Format 1.9.1. */

// Encodings of fonts by character set, and of documents by code page if it is not windows-N.
const CHARACTER_SETS: Readonly<Record<number, string>> = {
  128: 'shift_jis',
  129: 'euc-kr',
  134: 'gb18030',
  136: 'big5',
  161: 'windows-1253',
  162: 'windows-1254',
  163: 'windows-1258',
  177: 'windows-1255',
  178: 'windows-1256',
  186: 'windows-1257',
  204: 'windows-1251',
  222: 'windows-874',
  238: 'windows-1250',
}
const CODE_PAGES: Readonly<Record<number, string>> = {
  437: 'windows-1252',
  850: 'windows-1252',
  932: 'shift_jis',
  936: 'gb18030',
  949: 'euc-kr',
  950: 'big5',
  10000: 'macintosh',
  65001: 'utf-8',
}

// Control words of groups without document text.
const SKIPPED_GROUPS = new Set(
  'fonttbl colortbl stylesheet info pict objdata themedata datastore listtable listoverridetable revtbl rsidtbl generator xmlnstbl fldinst latentstyles'.split(
    ' ',
  ),
)
// A Map, because a plain object inherits `constructor` and `toString`, which a file may use as control words.
const CONTROL_WORD_TEXTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    par: '\n',
    line: '\n',
    row: '\n',
    sect: '\n',
    tab: '\t',
    cell: '\t',
    nestcell: '\t',
    nestrow: '\n',
    emdash: '—',
    endash: '–',
    emspace: ' ',
    enspace: ' ',
    lquote: '‘',
    rquote: '’',
    ldblquote: '“',
    rdblquote: '”',
    bullet: '•',
  }),
)
const CONTROL_SYMBOL_TEXTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '~': ' ',
    _: '-',
    '{': '{',
    '}': '}',
    '\\': '\\',
    '\n': '\n',
    '\r': '\n',
  }),
)

// Matches a control word with its number and closing space, a hex byte, a control symbol, a brace, or text.
const TOKEN = /\\([a-z]+)(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\([^a-z])|([{}])|([^\\{}\r\n]+)|[\r\n]+|\\/gi
// Limit of nested groups: no real document has more.
const MAX_NESTING = 10_000

interface GroupState {
  isSilent: boolean
  font: number
  /** Number of fallback characters after each `\u` character, for readers without Unicode. */
  fallback: number
}

/** Opens an RTF document, split at its explicit page breaks. */
export function openRtf(bytes: Uint8Array): PagedText {
  const reader = new RtfReader()
  for (const token of decodeLatin1(bytes).matchAll(TOKEN)) reader.take(token)
  return createPagedText(reader.end())
}

class RtfReader {
  readonly #pages = new PageCollector()
  readonly #groups: GroupState[] = []
  #state: GroupState = { isSilent: false, font: -1, fallback: 1 }
  #encoding = 'windows-1252'
  readonly #fonts = new Map<number, string>()
  #isFontTable = false
  // Number of fallback characters still to skip after a Unicode character.
  #left = 0
  // Pending bytes. They are decoded together, because a character may have several.
  #bytes: number[] = []

  take([, word, number, hex, sign, brace, text]: RegExpExecArray): void {
    if (hex !== undefined) this.#byte(Number.parseInt(hex, 16))
    else if (text !== undefined) this.#text(text)
    else if (brace !== undefined) this.#group(brace)
    else if (sign !== undefined) this.#sign(sign)
    else if (word !== undefined) this.#word(word, number === undefined ? null : Number(number))
  }

  end(): readonly string[] {
    this.#flush()
    return this.#pages.end()
  }

  #group(brace: string): void {
    this.#flush()
    this.#left = 0
    if (brace === '{' && this.#groups.length < MAX_NESTING) this.#groups.push({ ...this.#state })
    else if (brace === '}') this.#state = this.#groups.pop() ?? this.#state
  }

  #sign(sign: string): void {
    // The `\*` symbol starts a group that readers may ignore.
    if (sign === '*') this.#state.isSilent = true
    else this.#add(CONTROL_SYMBOL_TEXTS.get(sign) ?? '')
  }

  #word(word: string, number: number | null): void {
    if (word === 'u' && number !== null) {
      this.#unicode(number)
      return
    }
    this.#flush()
    if (SKIPPED_GROUPS.has(word)) this.#state.isSilent = true
    if (word === 'fonttbl') this.#isFontTable = true
    else if (word === 'f') this.#state.font = number ?? -1
    else if (word === 'uc') this.#state.fallback = Math.min(number ?? 1, 10)
    else if (word === 'ansicpg') this.#encoding = encodingOf(number ?? 1252)
    else if (word === 'mac') this.#encoding = 'macintosh'
    else if (word === 'fcharset' && this.#isFontTable) this.#font(number ?? 0)
    else if (word === 'page' || word === 'pagebb') this.#pageBreak()
    else this.#add(CONTROL_WORD_TEXTS.get(word) ?? '')
  }

  #font(characters: number): void {
    const encoding = CHARACTER_SETS[characters]
    if (encoding !== undefined) this.#fonts.set(this.#state.font, encoding)
  }

  #pageBreak(): void {
    if (!this.#state.isSilent) this.#pages.endPage()
  }

  #unicode(number: number): void {
    this.#flush()
    // The number is a signed 16-bit value. Concatenation joins the two halves of a surrogate pair.
    this.#add(String.fromCharCode(number & 0xffff))
    this.#left = this.#state.fallback
  }

  #byte(byte: number): void {
    if (this.#left > 0) this.#left--
    else if (!this.#state.isSilent) this.#bytes.push(byte)
  }

  #text(text: string): void {
    const left = Math.min(this.#left, text.length)
    this.#left -= left
    if (this.#state.isSilent || left === text.length) return
    // The second byte of a two-byte character may appear unescaped.
    for (const char of text.slice(left)) this.#bytes.push(char.charCodeAt(0))
  }

  #flush(): void {
    if (this.#bytes.length === 0) return
    const encoding = this.#fonts.get(this.#state.font) ?? this.#encoding
    this.#pages.add(new TextDecoder(encoding).decode(Uint8Array.from(this.#bytes)))
    this.#bytes = []
  }

  #add(text: string): void {
    this.#flush()
    if (!this.#state.isSilent) this.#pages.add(text)
  }
}

function encodingOf(codePage: number): string {
  const encoding = CODE_PAGES[codePage] ?? `windows-${codePage}`
  try {
    new TextDecoder(encoding)
    return encoding
  } catch {
    return 'windows-1252'
  }
}
