import { decodeLatin1 } from '../../../tasks/formats/encodings.ts'
import { decodeCodePage } from './code-pages.ts'
import { holdWhole } from './held.ts'
import { countRtf } from './held-rtf.ts'
import {
  ASIDE_GROUPS,
  CONTROL_SYMBOL_TEXTS,
  CONTROL_WORD_TEXTS,
  findFontCodePage,
  KNOWN_IGNORABLE_GROUPS,
  SKIPPED_GROUPS,
} from './rtf-words.ts'
import { isSymbolFont, mapSymbols } from './symbols.ts'
import { createPagedText, PageCollector, type PagedText } from './texts.ts'

/** Opens documents in Rich Text Format 1.9.1. */

// Matches a control word with its number and closing space, a hex byte, a control symbol, a brace, or text.
const TOKEN = /\\([a-z]+)(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\([^a-z])|([{}])|([^\\{}\r\n]+)|[\r\n]+|\\/giy
// Limit of nested groups: no real document has more.
const MAX_NESTING = 10_000
const MAX_FONT_NAME = 100

interface GroupState {
  isSilent: boolean
  /** True for hidden and deleted text. */
  isHidden: boolean
  /** True if the text stands apart from that of its paragraph. */
  isAside: boolean
  isFontTable: boolean
  /** True for groups that readers may ignore and this one does not know. */
  isIgnored: boolean
  font: number
  /** Number of fallback characters after each `\u` character, for readers without Unicode. */
  fallback: number
  /** True within `\upr`, which has its text once in the code page and once in Unicode (`\ud`). */
  hasUnicodeCopy: boolean
}

interface Font {
  codePage?: number
  name: string
}

/** Opens an RTF document, split at its page breaks and at those of the last layout. */
export function openRtf(bytes: Uint8Array): PagedText {
  const reader = new RtfReader()
  const rtf = decodeLatin1(bytes)
  TOKEN.lastIndex = 0
  for (let at = 0; at < rtf.length; ) {
    TOKEN.lastIndex = at
    const token = TOKEN.exec(rtf)
    // Binary data follows its control word unescaped.
    at = token === null ? at + 1 : TOKEN.lastIndex
    if (token?.[1] === 'bin') at += Math.max(0, Number(token[2] ?? 0))
    else if (token !== null) reader.take(token)
  }
  const pages = reader.end()
  const count = (enough: number): number =>
    countRtf(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), enough)
  const hasPictures = rtf.includes('\\pict') || rtf.includes('\\object')
  return { ...createPagedText(pages), hasPictures, holdings: holdWhole(pages, count) }
}

class RtfReader {
  readonly #pages = new PageCollector()
  readonly #groups: GroupState[] = []
  #state: GroupState = {
    isSilent: false,
    isHidden: false,
    isAside: false,
    isFontTable: false,
    isIgnored: false,
    font: -1,
    fallback: 1,
    hasUnicodeCopy: false,
  }
  #codePage = 1252
  #defaultFont = -1
  readonly #fonts = new Map<number, Font>()
  // True directly behind an opening brace, and behind the asterisk that follows it.
  #isGroupStart = false
  #isIgnorable = false
  // Number of fallback characters still to skip after a Unicode character.
  #left = 0
  // Pending bytes. They are decoded together, because a character may have several.
  #bytes: number[] = []
  // Notes, comments and text boxes of the page.
  #aside = new PageCollector()
  // True if the current section begins on a new page, and if it has not begun yet.
  #breaksSection = true
  #isSectionDue = false
  // True if paragraphs begin on a new page, and if the next one has not begun yet.
  #breaksParagraph = false
  #isParagraphDue = false
  // The name of a shape's property. The words of word art are one.
  #property = ''

  take([token, word, number, hex, sign, brace, text]: RegExpExecArray): void {
    const isStart = this.#isGroupStart
    if (/^[\r\n]/.test(token)) return
    this.#isGroupStart = brace === '{'
    if (hex !== undefined) this.#byte(Number.parseInt(hex, 16))
    else if (text !== undefined) this.#text(text)
    else if (brace !== undefined) this.#group(brace)
    else if (sign !== undefined) this.#sign(sign, isStart)
    else if (word !== undefined) this.#word(word, number === undefined ? null : Number(number))
  }

  end(): readonly string[] {
    this.#flush()
    this.#addAside()
    return this.#pages.end()
  }

  #group(brace: string): void {
    this.#flush()
    this.#left = 0
    this.#isIgnorable = false
    if (brace === '{' && this.#groups.length < MAX_NESTING) {
      this.#groups.push({ ...this.#state })
      // Only the copy in Unicode counts.
      if (this.#state.hasUnicodeCopy) this.#state.isSilent = true
    } else if (brace === '}') {
      if (this.#state.isAside && this.#groups.at(-1)?.isAside === false) this.#aside.endLine()
      this.#state = this.#groups.pop() ?? this.#state
    }
  }

  #sign(sign: string, isStart: boolean): void {
    // The `\*` symbol starts a group that readers may ignore, but only directly behind the brace.
    if (sign === '*') {
      if (isStart) this.#isIgnorable = true
    } else if (this.#left > 0) this.#left--
    else this.#add(CONTROL_SYMBOL_TEXTS.get(sign) ?? '')
  }

  #word(word: string, number: number | null): void {
    if (word === 'u' && number !== null) {
      this.#unicode(number)
      return
    }
    this.#flush()
    // A control word counts as one fallback character.
    if (this.#left > 0) this.#left--
    if (this.#isIgnorable && !KNOWN_IGNORABLE_GROUPS.has(word))
      [this.#state.isSilent, this.#state.isIgnored] = [true, true]
    this.#isIgnorable = false
    if (SKIPPED_GROUPS.has(word)) this.#state.isSilent = true
    if (ASIDE_GROUPS.has(word)) this.#state.isAside = true
    if (word === 'fonttbl') this.#state.isFontTable = true
    else if (word === 'sn' || word === 'sv') this.#startProperty(word)
    else if (this.#setCharacters(word, number) || this.#setPages(word, number)) return
    else this.#add(CONTROL_WORD_TEXTS.get(word) ?? '')
  }

  /** Handles control words about characters; false for other words. */
  #setCharacters(word: string, number: number | null): boolean {
    const state = this.#state
    if (word === 'f') state.font = number ?? -1
    else if (word === 'deff') this.#defaultFont = state.font = number ?? -1
    else if (word === 'plain') [state.font, state.isHidden] = [this.#defaultFont, false]
    else if (word === 'uc') state.fallback = Math.min(number ?? 1, 10)
    else if (word === 'ansicpg') this.#codePage = number ?? 1252
    else if (word === 'mac') this.#codePage = 10000
    else if (word === 'pc') this.#codePage = 437
    else if (word === 'pca') this.#codePage = 850
    else if (word === 'v' || word === 'deleted') state.isHidden = number !== 0
    else if (word === 'upr') state.hasUnicodeCopy = true
    else if (word === 'ud') {
      // The group within `\upr` that counts. Its own groups are not silent.
      state.isSilent = this.#groups.at(-1)?.isSilent ?? false
      state.hasUnicodeCopy = false
    } else if (word === 'fcharset' && state.isFontTable) this.#setFontCodePage(findFontCodePage(number ?? 0))
    else if (word === 'cpg' && state.isFontTable) this.#setFontCodePage(number ?? undefined)
    else return false
    return true
  }

  /** Handles control words about pages and sections; false for other words. */
  #setPages(word: string, number: number | null): boolean {
    if (word === 'page' || word === 'softpage') this.#endPage()
    else if (word === 'pagebb') {
      this.#breaksParagraph = number !== 0 && !this.#state.isSilent
      if (this.#breaksParagraph) this.#endPage()
    } else if (word === 'pard') this.#breaksParagraph = false
    else if (word === 'sectd') this.#breaksSection = true
    else if (/^sbk(none|col|page|even|odd)$/.test(word)) this.#breaksSection = !/none|col/.test(word)
    else {
      if (word === 'sect' && !this.#state.isSilent) this.#isSectionDue = true
      else if (word === 'par' && this.#breaksParagraph) this.#isParagraphDue = true
      return false
    }
    return true
  }

  #setFontCodePage(codePage: number | undefined): void {
    if (codePage !== undefined) this.#font().codePage = codePage
  }

  #font(): Font {
    const font = this.#fonts.get(this.#state.font) ?? { name: '' }
    this.#fonts.set(this.#state.font, font)
    return font
  }

  #startProperty(word: string): void {
    if (word === 'sn') this.#property = ''
    else if (/^gtextUNICODE$/.test(this.#property)) {
      ;[this.#state.isSilent, this.#state.isAside] = [this.#groups.at(-1)?.isSilent ?? false, true]
    }
  }

  #endPage(): void {
    if (this.#state.isSilent || this.#state.isAside) return
    this.#addAside()
    this.#pages.endPage()
    ;[this.#isSectionDue, this.#isParagraphDue] = [false, false]
  }

  #addAside(): void {
    const notes = this.#aside.end().join('\n')
    this.#aside = new PageCollector()
    if (notes === '') return
    this.#pages.endLine()
    this.#pages.add(`${notes}\n`)
  }

  #unicode(number: number): void {
    this.#flush()
    // The number is a signed 16-bit value. Concatenation joins the two halves of a surrogate pair.
    const character = String.fromCharCode(number & 0xffff)
    const { name = '' } = this.#fonts.get(this.#state.font) ?? {}
    // Symbol fonts have their characters in the private use area.
    this.#add(
      isSymbolFont(name) && character >= '\uf000' && character <= '\uf0ff'
        ? mapSymbols(name, character)
        : character,
    )
    this.#left = this.#state.fallback
  }

  #byte(byte: number): void {
    if (this.#left > 0) this.#left--
    else if (!this.#state.isSilent) this.#bytes.push(byte)
  }

  #text(text: string): void {
    const left = Math.min(this.#left, text.length)
    this.#left -= left
    if (this.#state.isFontTable) this.#nameFont(text)
    else if (this.#property.length < MAX_FONT_NAME) this.#property += text
    if (this.#state.isSilent || left === text.length) return
    // The second byte of a two-byte character may appear unescaped.
    for (const char of text.slice(left)) this.#bytes.push(char.charCodeAt(0))
  }

  #nameFont(text: string): void {
    if (this.#state.isIgnored) return
    const font = this.#font()
    if (font.name.length < MAX_FONT_NAME) font.name += text.replace(/;.*/, '').trim()
  }

  #flush(): void {
    if (this.#bytes.length === 0) return
    const bytes = this.#bytes
    this.#bytes = []
    const { codePage, name = '' } = this.#fonts.get(this.#state.font) ?? {}
    this.#write(
      isSymbolFont(name)
        ? bytes.map((byte) => mapSymbols(name, String.fromCharCode(byte))).join('')
        : decodeCodePage(Uint8Array.from(bytes), codePage ?? this.#codePage),
    )
  }

  #add(text: string): void {
    this.#flush()
    if (!this.#state.isSilent) this.#write(text)
  }

  #write(text: string): void {
    if (this.#state.isHidden || text === '') return
    if (this.#state.isAside) {
      this.#aside.add(text)
      return
    }
    // The properties of a section follow the end of the one before it.
    if ((this.#isSectionDue || this.#isParagraphDue) && text.trim() !== '') {
      const isBreak =
        (this.#isSectionDue && this.#breaksSection) || (this.#isParagraphDue && this.#breaksParagraph)
      ;[this.#isSectionDue, this.#isParagraphDue] = [false, false]
      if (isBreak) this.#endPage()
    }
    this.#pages.add(text)
  }
}
