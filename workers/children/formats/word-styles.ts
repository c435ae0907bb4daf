import type { BlockStart } from '../markdown/builder.ts'
import type { Archive } from './archive.ts'
import { mapSymbols } from './symbols.ts'
import { type Attributes, parseXml } from './xml.ts'

/** Reads the styles and the numbering of Word documents, as far as they add text or end pages. */

/** Properties of a paragraph or its style. */
export interface ParagraphProperties {
  breaksPage?: boolean
  numberId?: string
  level?: number
  style?: string
  /** The level of a heading from 0; 9 for text. */
  outline?: number
  /** The list that a drawing shows the paragraph in. */
  list?: 'none' | 'bullets' | 'numbers'
}

export const isOff = (value: string | undefined): boolean => /^(0|false|off)$/.test(value ?? '')

/** Sets the property of an element within `pPr`. */
export function setProperty(into: ParagraphProperties, name: string, attributes: Attributes): void {
  const value = attributes['w:val']
  if (name === 'pageBreakBefore') into.breaksPage = !isOff(value)
  else if (name === 'numId') into.numberId = value ?? '0'
  else if (name === 'ilvl') into.level = Math.min(Math.max(Number(value) || 0, 0), 8)
  else if (name === 'pStyle' || name === 'basedOn') into.style = value ?? ''
  else if (name === 'outlineLvl') into.outline = Number(value) || 0
  else if (name === 'buNone') into.list = 'none'
  else if (name === 'buChar' || name === 'buBlip') into.list = 'bullets'
  else if (name === 'buAutoNum') into.list = 'numbers'
}

// Styles of headings by name. Word keeps the English names; other programs translate them.
const HEADING_NAME =
  /^(?:heading|überschrift|titre|título|titolo|título|encabezado|kop|rubrik|overskrift|otsikko|nagłówek|nadpis|címsor|başlık|titlu|заголовок|επικεφαλίδα|כותרת|عنوان|标题|標題|見出し|제목)\s*([1-9])$/iu
const TITLE_NAME = /^(?:title|titel|titre|título|titolo)$/i
const MAX_OUTLINE = 8

/** Returns the outline level of a style by its name; null for other styles. */
function findOutline(name: string): number | null {
  if (TITLE_NAME.test(name)) return 0
  const level = HEADING_NAME.exec(name.trim())?.[1]
  return level === undefined ? null : Number(level) - 1
}

// A label that Markdown has, too.
const NUMBER_LABEL = /^\d{1,9}[.)] ?$/

/** True if a label is a bullet or a number that Markdown has, too. Word's bullets include a small O. */
export const isListMarker = (label: string): boolean =>
  NUMBER_LABEL.test(label) || label.trim() === 'o' || !/[\p{L}\p{N}]/u.test(label)

/** Tells a paragraph's block by its properties and its label. `isListed` is true if it has bullets by default. */
export function describeParagraph(
  { outline, level = 0, list: own }: ParagraphProperties,
  label: string,
  isListed: boolean,
): BlockStart {
  const list = own ?? (isListed ? 'bullets' : 'none')
  if (outline !== undefined && outline <= MAX_OUTLINE) return { kind: 'heading', level: outline + 1 }
  if (label === '' && list === 'none') return { kind: 'text' }
  const marker = NUMBER_LABEL.test(label) ? label.trim() : list === 'numbers' ? null : '-'
  return { kind: 'item', depth: level, marker }
}

// Limit of styles that are based on one another.
const MAX_STYLE_DEPTH = 20

export class WordStyles {
  readonly #styles = new Map<string, ParagraphProperties>()

  constructor(xml: string) {
    let style: ParagraphProperties = {}
    parseXml(xml, {
      open: (name, attributes) => {
        if (name === 'style') {
          style = {}
          this.#styles.set(attributes['w:styleId'] ?? '', style)
        } else if (name === 'name') {
          const outline = findOutline(attributes['w:val'] ?? '')
          if (outline !== null) style.outline = outline
        } else setProperty(style, name, attributes)
      },
    })
  }

  /** Completes the properties of a paragraph by those of its style. */
  resolve(own: ParagraphProperties): ParagraphProperties {
    let found: ParagraphProperties = own
    let style = this.#styles.get(own.style ?? '')
    for (let depth = 0; style !== undefined && depth < MAX_STYLE_DEPTH; depth++) {
      found = { ...style, ...found }
      style = this.#styles.get(style.style ?? '')
    }
    return found
  }
}

interface Level {
  start: number
  format: string
  text: string
  /** True if the numbers of all levels are decimal. */
  isLegal: boolean
  suffix: string
  font: string
}

interface AbstractNumbering {
  readonly levels: Map<number, Level>
  styleLink?: string
  linkedStyle?: string
}

interface Numbered {
  abstractId: string
  readonly starts: Map<number, number>
}

const createLevel = (): Level => ({
  start: 1,
  format: 'decimal',
  text: '',
  isLegal: false,
  suffix: 'tab',
  font: '',
})
// Longer labels than any document has.
const MAX_LABEL = 100

/** Counts numbered paragraphs. */
export class Numbering {
  readonly #abstract = new Map<string, AbstractNumbering>()
  readonly #numbers = new Map<string, Numbered>()
  readonly #counts = new Map<AbstractNumbering, (number | undefined)[]>()
  readonly #started = new Set<string>()

  constructor(xml: string) {
    let abstract: AbstractNumbering = { levels: new Map() }
    let number: Numbered | null = null
    let level = createLevel()
    let at = 0
    parseXml(xml, {
      open: (name, attributes) => {
        const value = attributes['w:val'] ?? ''
        if (name === 'abstractNum') {
          abstract = { levels: new Map() }
          this.#abstract.set(attributes['w:abstractNumId'] ?? '', abstract)
        } else if (name === 'num') {
          number = { abstractId: '', starts: new Map() }
          this.#numbers.set(attributes['w:numId'] ?? '', number)
        } else if (name === 'lvl' || name === 'lvlOverride') {
          at = Number(attributes['w:ilvl']) || 0
          level = createLevel()
          if (name === 'lvl' && number === null) abstract.levels.set(at, level)
        } else if (name === 'abstractNumId' && number !== null) number.abstractId = value
        else if (name === 'startOverride') number?.starts.set(at, Number(value) || 0)
        else if (name === 'styleLink') abstract.styleLink = value
        else if (name === 'numStyleLink') abstract.linkedStyle = value
        else setLevel(level, name, value, attributes)
      },
    })
  }

  /** Counts a paragraph and returns its label, such as `§ 2.`; '' if it has none. */
  next({ numberId = '0', level: at = 0 }: ParagraphProperties): string {
    const number = this.#numbers.get(numberId)
    const abstract = this.#find(number?.abstractId)
    const level = abstract?.levels.get(at)
    if (number === undefined || abstract === undefined || level === undefined) return ''
    const counts = this.#counts.get(abstract) ?? []
    this.#counts.set(abstract, counts)
    const start = number.starts.get(at)
    const key = `${numberId} ${at}`
    const isFirst = start !== undefined && !this.#started.has(key)
    this.#started.add(key)
    const before = counts[at]
    counts[at] = isFirst ? start : before === undefined ? level.start : before + 1
    counts.length = at + 1
    const label = level.text.slice(0, MAX_LABEL).replace(/%([1-9])/g, (_, digit: string) => {
      const other = abstract.levels.get(Number(digit) - 1)
      const count = counts[Number(digit) - 1] ?? other?.start ?? 1
      return formatCount(count, level.isLegal ? 'decimal' : (other?.format ?? 'decimal'))
    })
    const shown = level.format === 'bullet' ? mapBullet(level.font, label) : label
    return shown === '' || level.suffix === 'nothing' ? shown : `${shown} `
  }

  #find(id: string | undefined): AbstractNumbering | undefined {
    const abstract = this.#abstract.get(id ?? '')
    if (abstract?.linkedStyle === undefined) return abstract
    return [...this.#abstract.values()].find(({ styleLink }) => styleLink === abstract.linkedStyle)
  }
}

function setLevel(level: Level, name: string, value: string, attributes: Attributes): void {
  if (name === 'start') level.start = Number(value) || 0
  else if (name === 'numFmt') level.format = value
  else if (name === 'lvlText') level.text = value
  else if (name === 'isLgl') level.isLegal = !isOff(value || undefined)
  else if (name === 'suff') level.suffix = value
  else if (name === 'rFonts') level.font = attributes['w:ascii'] ?? attributes['w:hAnsi'] ?? ''
}

/** Returns a bullet as a readable character. Symbol fonts have theirs in the private use area. */
const mapBullet = (font: string, label: string): string =>
  mapSymbols(font, label)
    .replace(/[\ue000-\uf8ff]/g, '•')
    .trim() || '•'

const LETTERS = 26
const ROMAN = [
  [1000, 'm'],
  [900, 'cm'],
  [500, 'd'],
  [400, 'cd'],
  [100, 'c'],
  [90, 'xc'],
  [50, 'l'],
  [40, 'xl'],
  [10, 'x'],
  [9, 'ix'],
  [5, 'v'],
  [4, 'iv'],
  [1, 'i'],
] as const
// Longer numbers than this are shown in digits.
const MAX_ROMAN = 4999

/** Formats a number by a format of ECMA-376, part 1, 17.18.59. Formats of other scripts become digits. */
export function formatCount(count: number, format: string): string {
  if (format === 'none') return ''
  if (format === 'decimalZero') return String(count).padStart(2, '0')
  const isUpper = format.startsWith('upper')
  const word = /Roman$/.test(format)
    ? toRoman(count)
    : /Letter$/.test(format)
      ? toLetters(count)
      : String(count)
  return isUpper ? word.toUpperCase() : word
}

function toRoman(count: number): string {
  if (count < 1 || count > MAX_ROMAN) return String(count)
  let [left, word] = [count, '']
  for (const [value, letters] of ROMAN) for (; left >= value; left -= value) word += letters
  return word
}

/** Word repeats a letter after the 26th: aa, bb. */
function toLetters(count: number): string {
  if (count < 1 || count > LETTERS * 10) return String(count)
  const letter = String.fromCharCode(97 + ((count - 1) % LETTERS))
  return letter.repeat(Math.ceil(count / LETTERS))
}

/** Reads the styles and the numbering that a main part refers to. */
export async function readWordStyles(
  archive: Archive,
  main: string,
): Promise<{ styles: WordStyles; numbering: Numbering }> {
  const related = await archive.readRelations(main)
  const read = async (wanted: string): Promise<string> =>
    (await archive.text(related.find(({ type }) => type === wanted)?.path ?? '')) ?? ''
  return { styles: new WordStyles(await read('styles')), numbering: new Numbering(await read('numbering')) }
}
