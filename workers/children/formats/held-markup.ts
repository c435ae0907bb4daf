import { NameFilter, scanMarkup } from './held-text.ts'

/** Counts the letters that the parts of documents hold, by rules for each kind of markup. */

export interface MarkupRules {
  /** All names that matter. */
  readonly names: NameFilter
  /** Elements that hold no text that a reader shows. */
  readonly skipped: ReadonlySet<string>
  /** The element that holds the text; absent if all of the part may. */
  readonly within?: string
  /** True if the texts of hidden runs (`vanish`) do not count. */
  readonly hasHiddenRuns?: boolean
  /** True if an element without an end tag skips nothing, as in HTML. */
  readonly isHtml?: boolean
}

const list = (names: string): ReadonlySet<string> => new Set(names.split(/\s+/))

function createRules(skipped: string, options: Omit<MarkupRules, 'skipped' | 'names'> = {}): MarkupRules {
  const names = [...list(skipped), options.within ?? '', ...(options.hasHiddenRuns ? ['vanish', 'r'] : [])]
  const all = options.isHtml ? names.flatMap((name) => [name, name.toUpperCase()]) : names
  return { ...options, skipped: list(skipped), names: new NameFilter(all.filter((name) => name !== '')) }
}

// Numbers and words about places, sizes, links and fields of drawings; deleted text; instructions of fields; authors.
const OFFICE_SETTINGS = `instrText delInstrText delText del moveFrom rt rPh Fallback fldData binData posOffset align pctWidth pctHeight
  pctPosHOffset pctPosVOffset ClientData LockedField LinkType FieldCodes name author creationId attrName
  tblPr sectPrChange pPrChange rPrChange`

export const WORD_RULES = createRules(OFFICE_SETTINGS, { hasHiddenRuns: true })
export const FLAT_WORD_RULES = createRules(OFFICE_SETTINGS, { hasHiddenRuns: true, within: 'body' })
export const SLIDE_RULES = createRules(OFFICE_SETTINGS)
export const OPEN_DOCUMENT_RULES = createRules(
  'tracked-changes ruby-text binary-data creator date date-string scripts event-listeners index-title-template footer-decl header-decl date-time-decl',
  { within: 'body' },
)
export const HTML_RULES = createRules('script style noscript template svg math iframe object nav rt rp', {
  isHtml: true,
})
export const SVG_RULES = createRules('script style metadata')
export const XML_WORKBOOK_RULES = createRules('', { within: 'Data' })
export const XML_RULES = createRules('')

/** Counts the letters of the texts in markup. It may stop once there cannot be more than `enough`. */
export const countMarkup = (bytes: Uint8Array, rules: MarkupRules, enough = 0): number =>
  bytes.length <= enough ? 0 : new MarkupCounter(toUtf8(bytes), rules).count(enough)

/** Converts UTF-16, with or without a mark, so that tags are bytes of ASCII. */
export function toUtf8(bytes: Uint8Array): Buffer {
  const [first, second] = bytes
  const isLittle = (first === 0xff && second === 0xfe) || (first !== 0 && second === 0)
  const isBig = (first === 0xfe && second === 0xff) || (first === 0 && second !== 0)
  if (!isLittle && !isBig) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Buffer.from(new TextDecoder(isLittle ? 'utf-16le' : 'utf-16be').decode(bytes))
}

class MarkupCounter {
  readonly #bytes: Buffer
  readonly #rules: MarkupRules
  #total = 0
  // The skipped element, and the number of open elements of its name.
  #skipped = ''
  #depth = 0
  #within: number
  // Letters of the current run, and true if the run is hidden.
  #run = 0
  #isHidden = false

  constructor(bytes: Buffer, rules: MarkupRules) {
    this.#bytes = bytes
    this.#rules = rules
    this.#within = rules.within === undefined ? 1 : 0
  }

  count(enough: number): number {
    scanMarkup(this.#bytes, {
      names: this.#rules.names,
      isDone: (rest) => this.#total + this.#run + rest <= enough,
      tag: (name, kind, from, to) => this.#tag(name, kind, from, to),
      text: (letters) => {
        if (this.#depth === 0 && this.#within > 0) this.#run += letters
      },
    })
    return this.#total + this.#run
  }

  #tag(qualified: string, kind: 'start' | 'end' | 'empty', from: number, to: number): void {
    const { skipped, within, hasHiddenRuns, isHtml } = this.#rules
    const name = isHtml === true ? qualified.toLowerCase() : qualified
    if (this.#depth > 0) {
      if (name === this.#skipped && kind !== 'empty') this.#depth += kind === 'start' ? 1 : -1
      return
    }
    if (kind === 'start' && skipped.has(name) && (isHtml !== true || this.#isClosed(name, to))) {
      ;[this.#skipped, this.#depth] = [name, 1]
      return
    }
    if (name === within && kind !== 'empty') this.#within += kind === 'start' ? 1 : -1
    if (hasHiddenRuns !== true) return
    if (name === 'vanish')
      this.#isHidden ||= !/val="(0|false|off)"/.test(this.#bytes.toString('latin1', from, to))
    else if (name === 'r') this.#endRun()
  }

  #endRun(): void {
    if (!this.#isHidden) this.#total += this.#run
    ;[this.#run, this.#isHidden] = [0, false]
  }

  // The place of the next end tag, by its spelling: a search for each element would read the file each time.
  readonly #ends = new Map<string, number>()

  #isClosed(name: string, from: number): boolean {
    return [name, name.toUpperCase()].some((one) => this.#findEnd(`</${one}`, from) < this.#bytes.length)
  }

  #findEnd(tag: string, from: number): number {
    const known = this.#ends.get(tag) ?? -1
    if (known >= from) return known
    const found = this.#bytes.indexOf(tag, from, 'latin1')
    const at = found === -1 ? this.#bytes.length : found
    this.#ends.set(tag, at)
    return at
  }
}

const STRING_NAMES = new NameFilter(['si', 'rPh'])

/** Counts the letters of the strings that the cells of a workbook share. */
export function countStrings(bytes: Uint8Array): readonly number[] {
  const counts: number[] = []
  let [letters, phonetic] = [0, 0]
  scanMarkup(toUtf8(bytes), {
    names: STRING_NAMES,
    tag(name, kind) {
      if (name === 'rPh' && kind !== 'empty') phonetic += kind === 'start' ? 1 : -1
      else if (name === 'si' && kind === 'start') letters = 0
      else if (name === 'si') counts.push(kind === 'end' ? letters : 0)
    },
    text(found) {
      if (phonetic === 0) letters += found
    },
  })
  return counts
}

// Letters of a string that the file lacks.
const USUAL_LETTERS = 5

const CELL_NAMES = new NameFilter(['c', 'v', 't', 'f', 'rPh'])

/** Counts the letters of a sheet's cells. `strings` has those of the shared strings, or is null if the file lacks them. */
export function countCells(bytes: Uint8Array, strings: readonly number[] | null): number {
  const sheet = toUtf8(bytes)
  let total = 0
  let type: CellType = 'other'
  let [isValue, phonetic] = [false, 0]
  let valueAt = 0
  scanMarkup(sheet, {
    names: CELL_NAMES,
    tag(name, kind, from, to) {
      if (name === 'rPh' && kind !== 'empty') phonetic += kind === 'start' ? 1 : -1
      else if (name === 'c') type = kind === 'start' ? findType(sheet, from, to) : 'other'
      else {
        isValue = kind === 'start' && phonetic === 0 && name !== 'f'
        valueAt = to
      }
    },
    text(letters) {
      if (!isValue) return
      if (type !== 'string') total += type === 'number' ? countNumber(sheet, valueAt) : letters
      else total += strings === null ? USUAL_LETTERS : (strings[readInteger(sheet, valueAt)] ?? 0)
    },
  })
  return total
}

const [S, T, EQUALS, SPACE] = [0x73, 0x74, 0x3d, 0x20] as const

type CellType = 'string' | 'number' | 'other'

/** Returns the type of a cell by its tag. Numbers and shared strings have types of one letter. */
function findType(bytes: Buffer, from: number, to: number): CellType {
  for (let at = from; at + 4 < to; at++)
    if (bytes[at] === T && bytes[at + 1] === EQUALS && bytes[at - 1]! <= SPACE)
      return bytes[at + 4] !== bytes[at + 2] ? 'other' : bytes[at + 3] === S ? 'string' : 'number'
  return 'number'
}

function readInteger(bytes: Buffer, from: number): number {
  let value = 0
  for (let at = from; bytes[at]! >= 0x30 && bytes[at]! <= 0x39; at++) value = value * 10 + bytes[at]! - 0x30
  return value
}

/** Returns 1 for a number that a cell shows by at least a digit. Zeros may be shown as dashes. */
function countNumber(bytes: Buffer, from: number): number {
  const end = bytes.indexOf(LESS, from)
  for (let at = from; at < end; at++) if (bytes[at]! >= 0x31 && bytes[at]! <= 0x39) return 1
  return 0
}
const LESS = 0x3c
