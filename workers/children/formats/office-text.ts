import { isSymbolFont, mapSymbols } from './symbols.ts'
import { PageCollector } from './texts.ts'
import {
  describeParagraph,
  isListMarker,
  isOff,
  type Numbering,
  type ParagraphProperties,
  setProperty,
  type WordStyles,
} from './word-styles.ts'
import { type Attributes, parseXml } from './xml.ts'

/** Reads the text of Office Open XML parts: word processing (w), drawings (a) and presentations (p). */

export interface TextOptions {
  /** Texts of the charts, diagrams and files that the part shows, by relation id. */
  readonly related?: ReadonlyMap<string, string>
  readonly styles?: WordStyles
  readonly numbering?: Numbering
  /** True to skip the placeholders of layouts: slides have their own text for them. */
  readonly withoutPlaceholders?: boolean
  /** True for the part of a slide itself: its title is a heading, and its content is a list. */
  readonly isSlide?: boolean
}

// Skip the contents of these elements: duplicates (`Fallback`), deleted or moved text, phonetic guides (`rt`) and
// earlier properties.
const SKIPPED_ELEMENTS = new Set([
  'Fallback',
  'moveFrom',
  'del',
  'rt',
  'tblPr',
  'sectPrChange',
  'pPrChange',
  'rPrChange',
])
const TEXT_ELEMENTS: Readonly<Record<string, string>> = {
  tab: '\t',
  ptab: '\t',
  noBreakHyphen: '-',
}
const TABLE_PARTS = new Set(['tbl', 'tr', 'tc', 'gridSpan'])
const TITLES = new Set(['title', 'ctrTitle'])
// Placeholders whose paragraphs have bullets in nearly every layout.
const LISTS = new Set(['', 'obj'])
const SECTION_BREAKS = new Set(['nextPage', 'oddPage', 'evenPage'])

/** Adds the text of a part, split at page breaks, including those that a word processor recorded at its last layout. */
export function addOfficeText(xml: string, pages: PageCollector, options: TextOptions = {}): void {
  const reader = new OfficeText(pages, options, listSectionTypes(xml))
  parseXml(xml, {
    open: (name, attributes) => reader.open(name, attributes),
    text: (data) => reader.text(data),
    close: (name) => reader.close(name),
  })
  reader.end()
}

/** Returns the text of a part, without pages. */
export function extractOfficeText(xml: string, options: TextOptions = {}): string {
  const pages = new PageCollector()
  addOfficeText(xml, pages, options)
  return pages.end().join('\n')
}

/** Lists the types of all sections, which follow the text of their sections; [] if there is only one section. */
function listSectionTypes(xml: string): readonly string[] {
  const first = xml.indexOf('sectPr')
  if (xml.indexOf('sectPr', xml.indexOf('/', first) + 10) === -1) return []
  const types: string[] = []
  let changes = 0
  let isSection = false
  parseXml(xml, {
    open(name, attributes) {
      if (name === 'sectPrChange') changes++
      if (changes > 0) return
      if (name === 'sectPr') {
        types.push('nextPage')
        isSection = true
      } else if (isSection && name === 'type') types[types.length - 1] = attributes['w:val'] ?? 'nextPage'
    },
    close(name) {
      if (name === 'sectPrChange') changes--
      else if (name === 'sectPr' && changes === 0) isSection = false
    },
  })
  return types
}

class OfficeText {
  readonly #pages: PageCollector
  readonly #options: TextOptions
  readonly #sections: readonly string[]
  // Related texts that no element has shown yet.
  readonly #related: Map<string, string>
  #section = 0
  // Depth of skipped elements, of table cells, and of paragraph and run properties.
  #silent = 0
  #cells = 0
  #properties = 0
  #runProperties = 0
  #isText = false
  #paragraph: ParagraphProperties = {}
  #endsSection = false
  // Properties of the current run.
  #isHidden = false
  #font = ''
  // The state of a form field, or null outside of one.
  #field: { isChecked: boolean; choice: number; readonly choices: string[] } | null = null
  // True within a placeholder of a layout.
  #isPlaceholder = false
  // The type of the slide's placeholder, or null outside of one.
  #holder: string | null = null

  constructor(pages: PageCollector, options: TextOptions, sections: readonly string[]) {
    this.#pages = pages
    this.#options = options
    this.#sections = sections
    this.#related = new Map(options.related)
  }

  open(name: string, attributes: Attributes): void {
    this.#isText = false
    if (SKIPPED_ELEMENTS.has(name)) this.#silent++
    if (this.#silent > 0) return
    if (name === 'pPr') {
      if (this.#properties++ === 0)
        this.#paragraph = { ...(attributes.lvl && { level: Number(attributes.lvl) || 0 }) }
    } else if (name === 'rPr') this.#runProperties++
    if (this.#runProperties > 0) this.#setRunProperty(name, attributes)
    else if (this.#properties > 0) this.#setParagraphProperty(name, attributes)
    else if (this.#field !== null) this.#setField(name, attributes)
    else this.#openContent(name, attributes)
  }

  text(data: string): void {
    if (this.#isText && this.#silent === 0)
      this.#add(isSymbolFont(this.#font) ? mapSymbols(this.#font, data) : data)
  }

  close(name: string): void {
    this.#isText = false
    if (SKIPPED_ELEMENTS.has(name)) this.#silent--
    if (this.#silent > 0) return
    if (name === 'pPr') this.#endProperties()
    else if (name === 'rPr') this.#runProperties--
    else if (name === 'checkBox' || name === 'ddList') this.#endField(name)
    else if (name === 'sp' || name === 'pic' || name === 'graphicFrame')
      [this.#isPlaceholder, this.#holder] = [false, null]
    else if (name === 'p') this.#endParagraph()
    else if (name === 'tc') {
      this.#cells--
      this.#pages.add('\t', '')
      this.#pages.structure.closeCell()
    } else if (name === 'tr') this.#pages.endLine()
    else if (name === 'tbl') this.#pages.structure.closeTable()
  }

  /** Adds the related texts that no known element shows. */
  end(): void {
    for (const text of this.#related.values()) if (text !== '') this.#addLine(text)
  }

  #add(text: string): void {
    if (!this.#isHidden && !this.#isPlaceholder) this.#pages.add(text)
  }

  #openContent(name: string, attributes: Attributes): void {
    if (name === 't' || name === 'text') this.#isText = true
    else if (Object.hasOwn(TEXT_ELEMENTS, name)) this.#add(TEXT_ELEMENTS[name]!)
    else if (name === 'br' && attributes['w:type'] === 'page') this.#pages.endPage()
    else if (name === 'br' || name === 'cr') this.#addBreak()
    else if (name === 'lastRenderedPageBreak') this.#pages.endPage()
    else if (TABLE_PARTS.has(name)) this.#openTablePart(name, attributes)
    else if (name === 'r') [this.#isHidden, this.#font] = [false, '']
    else if (name === 'sym') this.#addSymbol(attributes)
    else if (name === 'checkBox' || name === 'ddList')
      this.#field = { isChecked: false, choice: 0, choices: [] }
    else if (name === 'txbxContent') this.#pages.endLine()
    // The words of a watermark.
    else if (name === 'textpath') this.#addLine(attributes.string ?? '')
    else if (name === 'ph') {
      this.#isPlaceholder = this.#options.withoutPlaceholders === true
      if (this.#options.isSlide === true) this.#holder = attributes.type ?? ''
    } else if (name === 'p') this.#openParagraph()
    else this.#addRelated(attributes['r:id'] ?? attributes['r:dm'])
  }

  #addBreak(): void {
    if (!this.#isHidden && !this.#isPlaceholder) this.#pages.addBreak()
  }

  #openTablePart(name: string, attributes: Attributes): void {
    const { structure } = this.#pages
    if (name === 'tbl') structure.openTable()
    else if (name === 'tr') structure.openRow()
    else if (name === 'tc') {
      this.#cells++
      structure.openCell()
    } else structure.spanCell(Number(attributes['w:val']))
  }

  #openParagraph(): void {
    this.#paragraph = {}
    this.#beginBlock('')
  }

  /** Begins the block of a paragraph. Returns the part of its label that Markdown has no mark for. */
  #beginBlock(label: string, properties: ParagraphProperties = {}): string {
    const { structure } = this.#pages
    const isList = this.#holder !== null && LISTS.has(this.#holder)
    const start =
      this.#holder !== null && TITLES.has(this.#holder)
        ? { kind: 'heading' as const, level: 1 }
        : describeParagraph(properties, label, isList)
    structure.begin(start)
    return start.kind === 'item' && isListMarker(label) ? '' : label
  }

  #addRelated(id: string | undefined): void {
    const text = id === undefined ? undefined : this.#related.get(id)
    if (text === undefined) return
    this.#related.delete(id!)
    if (text !== '') this.#addLine(text)
  }

  #addLine(text: string): void {
    this.#pages.endLine()
    this.#pages.add(`${text}\n`)
  }

  #addSymbol(attributes: Attributes): void {
    const code = Number.parseInt(attributes['w:char'] ?? '', 16)
    if (!Number.isNaN(code)) this.#add(mapSymbols(attributes['w:font'] ?? '', String.fromCharCode(code)))
  }

  #setRunProperty(name: string, attributes: Attributes): void {
    // The properties of a paragraph's mark are not those of its text.
    if (this.#properties > 0) return
    if (name === 'rFonts') this.#font = attributes['w:ascii'] ?? attributes['w:hAnsi'] ?? ''
    else if (name === 'vanish') this.#isHidden = !isOff(attributes['w:val'])
  }

  #setParagraphProperty(name: string, attributes: Attributes): void {
    if (name === 'sectPr') {
      this.#section++
      this.#endsSection = SECTION_BREAKS.has(this.#sections[this.#section] ?? '')
    } else setProperty(this.#paragraph, name, attributes)
  }

  #endProperties(): void {
    if (--this.#properties > 0) return
    const { styles, numbering } = this.#options
    const properties = styles?.resolve(this.#paragraph) ?? this.#paragraph
    if (properties.breaksPage === true) this.#pages.endPage()
    ;[this.#isHidden, this.#font] = [false, '']
    const label = numbering?.next(properties) ?? ''
    const shown = this.#beginBlock(label, properties)
    if (label !== '' && !this.#isPlaceholder) this.#pages.add(label, shown)
  }

  #endParagraph(): void {
    if (!this.#isPlaceholder) this.#pages.add(this.#cells > 0 ? ' ' : '\n', '\n')
    if (this.#endsSection) this.#pages.endPage()
    this.#endsSection = false
  }

  #setField(name: string, attributes: Attributes): void {
    const field = this.#field!
    const value = attributes['w:val']
    if (name === 'checked' || name === 'default') field.isChecked = !isOff(value)
    if (name === 'result' || name === 'default') field.choice = Number(value) || 0
    else if (name === 'listEntry') field.choices.push(value ?? '')
  }

  #endField(name: string): void {
    const { isChecked = false, choice = 0, choices = [] } = this.#field ?? {}
    this.#field = null
    this.#add(name === 'checkBox' ? (isChecked ? '☒' : '☐') : (choices[choice] ?? ''))
  }
}
