import { appendParagraphs, decodeXml, MAX_CHARACTERS } from '../documents/texts.ts'
import { Archive } from './archive.ts'
import { showFormula } from './formulas.ts'
import { holdWhole } from './held.ts'
import { countMarkup, OPEN_DOCUMENT_RULES } from './held-markup.ts'
import { decryptOpenDocument } from './open-document-crypto.ts'
import { PARAGRAPH_ELEMENTS, readMasters } from './open-document-masters.ts'
import { PageBreakStyles } from './open-document-styles.ts'
import { createPagedText, PageCollector, type PagedText, type PictureMap } from './texts.ts'
import { type Attributes, parseXml } from './xml.ts'

/** Opens OpenDocument files (ISO/IEC 26300-3), as archives or flat: texts, spreadsheets, presentations and drawings. */

// Skip the contents of these elements: deleted text, phonetic guides (furigana) and pictures of flat files.
const SKIPPED_ELEMENTS = new Set(['tracked-changes', 'ruby-text', 'binary-data'])
const HEADER_OR_FOOTER = /^(header|footer)(-left|-first)?$/
const MAX_SPACES = 100
// Limits of expanded repetitions. A file may repeat an empty cell to the end of its row, and an empty row to the end of
// the sheet.
const MAX_CELLS = 100
const MAX_ROWS = 1000
// Limit of embedded charts and formulas.
const MAX_OBJECTS = 100

/**
 * The element that starts a page, and the attribute with the page's title, if any. Text documents mark page breaks
 * instead.
 */
const PAGE_ELEMENTS: Readonly<Record<string, readonly [element: string, name: string]>> = {
  spreadsheet: ['table', 'table:name'],
  presentation: ['page', ''],
  graphics: ['page', ''],
}

/** The parts of a file. A flat file has all of them in one. */
interface Parts {
  /** The part with the content, as it is in the file. */
  readonly bytes: Uint8Array
  readonly content: string
  readonly styles: string
  readonly objects: ReadonlyMap<string, string>
  readonly mediaType: string
  readonly archive?: Archive
}

/** Opens a file. @throws Unreadable, and Locked if it is encrypted and the password is missing or wrong. */
export async function openOpenDocument(
  bytes: Uint8Array,
  mediaType: string,
  password: string | null,
): Promise<PagedText> {
  const isFlat = bytes[0] !== 0x50
  const parts = isFlat ? readFlatParts(bytes, mediaType) : await readParts(bytes, mediaType, password)
  const page = PAGE_ELEMENTS[/opendocument\.([a-z]+)/.exec(parts.mediaType)?.[1] ?? '']
  const breaks = new PageBreakStyles()
  const pages = new PageCollector()
  if (page === undefined) {
    breaks.add(parts.styles)
    if (parts.content !== parts.styles) breaks.add(parts.content)
    addText(parts.styles, pages, { only: HEADER_OR_FOOTER, breaks: new PageBreakStyles() })
    pages.endLine()
    pages.endLead()
  }
  const { objects } = parts
  addText(parts.content, pages, { breaks, objects, ...(page && { page }), ...(isFlat && { only: /^body$/ }) })
  const [first = '', ...others] = pages.end()
  const masters = page === undefined ? '' : readMasters(parts.styles)
  const [markdown = null, ...more] = pages.markdown
  const pageOf = page === undefined ? undefined : placePictures(parts.content, page[0])
  const texts = [`${first}\n${masters}`.trim(), ...others]
  return {
    ...createPagedText(texts, parts.archive, pageOf, [
      masters === '' ? markdown : appendParagraphs(markdown, [masters]),
      ...more,
    ]),
    // The name of a sheet is the first line of its page.
    title: (n) => (page?.[0] === 'table' ? (texts[n - 1] ?? '').split('\n', 1)[0]! : ''),
    holdings: holdWhole([first, ...others], (enough) =>
      countMarkup(parts.bytes, OPEN_DOCUMENT_RULES, enough),
    ),
  }
}

/** Finds the first page of each picture, by its path in lower case. */
function placePictures(xml: string, pageElement: string): PictureMap {
  const pageOf = new Map<string, number>()
  let [page, depth] = [0, 0]
  parseXml(xml, {
    open(name, { 'xlink:href': target = '' }) {
      if (name === pageElement && depth++ === 0) page++
      const path = target.replace(/^\.\//, '').toLowerCase()
      if (name === 'image' && page > 0 && !pageOf.has(path)) pageOf.set(path, page)
    },
    close(name) {
      if (name === pageElement) depth--
    },
  })
  return pageOf
}

function readFlatParts(bytes: Uint8Array, mediaType: string): Parts {
  const xml = decodeXml(bytes)
  let declared = ''
  parseXml(xml.slice(0, 16_384), {
    open: (_, attributes) => {
      declared ||= attributes['office:mimetype'] ?? ''
    },
  })
  return { bytes, content: xml, styles: xml, objects: new Map(), mediaType: declared || mediaType }
}

async function readParts(bytes: Uint8Array, mediaType: string, password: string | null): Promise<Parts> {
  let archive = await Archive.open(bytes)
  const manifest = (await archive.text('META-INF/manifest.xml')) ?? ''
  if (manifest.includes('encryption-data')) archive = await decryptOpenDocument(archive, manifest, password)
  const objects = new Map<string, string>()
  for (const path of archive.paths.filter((name) => /.\/content\.xml$/.test(name)).slice(0, MAX_OBJECTS)) {
    const pages = new PageCollector()
    addText((await archive.text(path)) ?? '', pages, { breaks: new PageBreakStyles() })
    objects.set(path.replace(/\/content\.xml$/, ''), pages.end().join('\n'))
  }
  const styles = (await archive.text('styles.xml')) ?? ''
  const content = await archive.readRequired('content.xml')
  const contentBytes = (await archive.bytes('content.xml'))!
  return { bytes: contentBytes, content, styles, objects, mediaType, archive }
}

interface TextSelection {
  /** Restricts the text to elements with matching names. */
  readonly only?: RegExp
  readonly page?: readonly [element: string, name: string]
  readonly breaks: PageBreakStyles
  /** The texts of embedded objects by their path. */
  readonly objects?: ReadonlyMap<string, string>
}

const parseRepeat = (repeated: string | undefined, max: number): number =>
  Math.min(Number(repeated ?? 1) || 1, max)

/** Returns the value of a cell without text, or its formula. */
function readCellValue(attributes: Attributes): string {
  const formula = attributes['table:formula']
    ?.replace(/^[a-z]+:=?|^=/i, '')
    // References are in brackets, and have a dot before the column.
    .replace(/\[([^\]]*)\]/g, (_, reference: string) => reference.replace(/(^|:)\./g, '$1'))
  const value =
    attributes['office:string-value'] ?? attributes['office:date-value'] ?? attributes['office:value']
  return value ?? attributes['office:boolean-value'] ?? (formula === undefined ? '' : showFormula(formula))
}

/** A row of a sheet. The file stores a run of equal rows or cells once, with a count; this class expands it. */
class Row {
  #text = ''
  #cell = ''
  #value = ''
  #cells = 1
  #rows = 1
  /** The rows of the sheet so far. */
  rows: (readonly string[])[] = []

  begin(attributes: Attributes): void {
    this.#text = ''
    this.#rows = parseRepeat(attributes['table:number-rows-repeated'], MAX_ROWS)
  }

  beginCell(attributes: Attributes): void {
    this.#cell = ''
    this.#value = readCellValue(attributes)
    this.#cells = parseRepeat(attributes['table:number-columns-repeated'], MAX_CELLS)
  }

  add(text: string): void {
    if (this.#cell.length <= MAX_CHARACTERS) this.#cell += text
  }

  endCell(): void {
    const cell = this.#cell === '' ? this.#value : this.#cell
    for (let n = 0; n < this.#cells && this.#text.length <= MAX_CHARACTERS; n++) this.#text += `${cell}\t`
  }

  end(pages: PageCollector): void {
    // Trailing empty cells and repeated empty rows would use up the page's character limit.
    const text = this.#text.trimEnd()
    const rows = text === '' ? 1 : this.#rows
    const cells = text === '' ? [] : text.split('\t')
    for (let n = 0; n < rows && !pages.isFull; n++) {
      pages.add(`${text}\n`, '')
      if (cells.length > 0) this.rows.push(cells)
    }
  }

  /** Adds the table of the rows so far. */
  endTable({ structure }: PageCollector): void {
    structure.addRows(this.rows)
    this.rows = []
  }
}

function addText(xml: string, pages: PageCollector, selection: TextSelection): void {
  const reader = new OpenDocumentText(pages, selection)
  parseXml(xml, {
    open: (name, attributes) => reader.open(name, attributes),
    text: (data) => reader.text(data),
    close: (name) => reader.close(name),
  })
}

class OpenDocumentText {
  readonly #pages: PageCollector
  readonly #selection: TextSelection
  // Only sheets have rows. A cell includes the text of the tables nested in it.
  readonly #row: Row | null
  #within: number
  // Depths of paragraphs, skipped elements, cells and pages.
  #paragraphs = 0
  #silent = 0
  #cells = 0
  #pageDepth = 0
  // The style of each open list, which those within it share, and whether its item has begun.
  readonly #lists: { readonly style: string; isItemStart: boolean }[] = []
  #isTitle = false
  // Style names of open paragraphs and tables.
  readonly #styles: (string | undefined)[] = []

  constructor(pages: PageCollector, selection: TextSelection) {
    this.#pages = pages
    this.#selection = selection
    this.#row = selection.page?.[0] === 'table' ? new Row() : null
    this.#within = selection.only === undefined ? 1 : 0
  }

  open(name: string, attributes: Attributes): void {
    const { only, page } = this.#selection
    if (only?.test(name)) this.#within++
    if (SKIPPED_ELEMENTS.has(name)) this.#silent++
    if (this.#within === 0) return
    if (name === page?.[0] && this.#pageDepth++ === 0) {
      this.#pages.beginPage()
      if (this.#row === null) this.#pages.add('\n')
      else this.#pages.addSheetTitle(attributes[page[1]] ?? '')
    }
    if (PARAGRAPH_ELEMENTS.has(name)) this.#openParagraph(name, attributes)
    else if (this.#openStructure(name, attributes)) return
    else if (name === 'table') this.#openTable(attributes['table:style-name'])
    if (name === 'table-row') this.#openRow(attributes)
    if (this.#isCell(name)) {
      if (this.#cells++ === 0) this.#row?.beginCell(attributes)
      if (this.#row === null) this.#openCell(attributes)
    } else if (name === 'covered-table-cell') this.#pages.structure.openCell()
    else if (name === 'soft-page-break') this.#pages.endPage()
    else if (this.#silent > 0) return
    else if (name === 'object') this.#addObject(attributes['xlink:href'] ?? '')
    else if (this.#paragraphs === 0) this.#addControl(attributes)
    else if (name === 's') this.#add(' '.repeat(parseRepeat(attributes['text:c'], MAX_SPACES)))
    else if (name === 'tab') this.#add('\t')
    else if (name === 'line-break') this.#addBreak()
  }

  text(data: string): void {
    if (this.#paragraphs > 0 && this.#silent === 0 && this.#within > 0)
      this.#add(data.replace(/[ \t\r\n]+/g, ' '))
  }

  close(name: string): void {
    const { only, page } = this.#selection
    if (SKIPPED_ELEMENTS.has(name)) this.#silent--
    if (this.#within > 0) {
      if (name === page?.[0] && --this.#pageDepth === 0) this.#row?.endTable(this.#pages)
      if (PARAGRAPH_ELEMENTS.has(name)) this.#closeParagraph()
      else if (name === 'list') this.#lists.pop()
      else if (name === 'frame') this.#isTitle = false
      else if (name === 'table') this.#closeTable()
      else if (this.#isCell(name)) this.#closeCell()
      else if (name === 'table-row') {
        if (this.#row === null) this.#pages.endLine()
        else if (this.#cells === 0) this.#row.end(this.#pages)
        else this.#add('\n')
      }
    }
    if (only?.test(name)) this.#within--
  }

  // A covered cell is hidden by a merged one, but still takes up a column.
  #isCell(name: string): boolean {
    return name === 'table-cell' || (this.#row !== null && name === 'covered-table-cell')
  }

  #add(text: string, marked: string = text): void {
    if (this.#cells > 0 && this.#row !== null) this.#row.add(text)
    else this.#pages.add(text, marked)
  }

  /** Handles lists and the titles of slides; false for other elements. */
  #openStructure(name: string, attributes: Attributes): boolean {
    if (name === 'list')
      this.#lists.push({
        style: attributes['text:style-name'] ?? this.#lists.at(-1)?.style ?? '',
        isItemStart: false,
      })
    else if (name === 'list-item') this.#startItem()
    else if (name === 'frame') this.#isTitle = attributes['presentation:class'] === 'title'
    else return false
    return true
  }

  #startItem(): void {
    const list = this.#lists.at(-1)
    if (list !== undefined) list.isItemStart = true
  }

  /** Begins the block of a paragraph. */
  #beginBlock(isHeading: boolean, level: number): void {
    const { structure } = this.#pages
    const depth = this.#lists.length
    const list = this.#lists.at(-1)
    structure.listDepth = depth
    if (this.#row !== null && this.#pageDepth > 0) return
    if (isHeading) structure.begin({ kind: 'heading', level })
    else if (list?.isItemStart === true) {
      const isNumbered = this.#selection.breaks.isNumbered(list.style, depth)
      structure.begin({ kind: 'item', depth: depth - 1, marker: isNumbered ? null : '-' })
    } else structure.endBlock()
    if (list !== undefined) list.isItemStart = false
  }

  #openParagraph(name: string, attributes: Attributes): void {
    const style = attributes['text:style-name']
    this.#styles.push(style)
    // A box or a note within a paragraph has lines of its own.
    if (this.#paragraphs++ > 0 && this.#cells === 0) this.#pages.endLine()
    if (this.#selection.breaks.breaksBefore('paragraph', style)) this.#pages.endPage()
    const outline = this.#selection.breaks.findOutline(style)
    const isHeading = name === 'h' || this.#isTitle || outline !== null
    this.#beginBlock(isHeading, Number(attributes['text:outline-level'] ?? outline ?? 1) || 1)
  }

  #openTable(style: string | undefined): void {
    this.#styles.push(style)
    if (this.#selection.breaks.breaksBefore('table', style)) this.#pages.endPage()
    if (this.#row === null) this.#pages.structure.openTable()
  }

  #closeTable(): void {
    if (this.#row === null) this.#pages.structure.closeTable()
    this.#endStyle('table')
  }

  #closeParagraph(): void {
    this.#paragraphs--
    if (this.#silent === 0) this.#add(this.#cells > 0 ? ' ' : '\n', '\n')
    this.#endStyle('paragraph')
  }

  #endStyle(family: 'paragraph' | 'table'): void {
    if (this.#selection.breaks.breaksAfter(family, this.#styles.pop())) this.#pages.endPage()
  }

  #openRow(attributes: Attributes): void {
    if (this.#row === null) this.#pages.structure.openRow()
    else if (this.#cells === 0) this.#row.begin(attributes)
  }

  #openCell(attributes: Attributes): void {
    // Covered cells have elements of their own.
    this.#pages.structure.openCell(parseRepeat(attributes['table:number-columns-repeated'], MAX_CELLS))
  }

  #closeCell(): void {
    this.#cells--
    if (this.#row !== null && this.#cells === 0) this.#row.endCell()
    else {
      this.#add('\t', '')
      if (this.#row === null) this.#pages.structure.closeCell()
    }
  }

  #addBreak(): void {
    if (this.#cells > 0 && this.#row !== null) this.#row.add('\n')
    else this.#pages.addBreak()
  }

  #addObject(href: string): void {
    const text = this.#selection.objects?.get(href.replace(/^\.\//, '').toLowerCase())
    if (!text) return
    if (this.#cells === 0) this.#pages.endLine()
    this.#add(`${text}\n`)
  }

  /** Adds the words of a form's control. */
  #addControl(attributes: Attributes): void {
    const text = attributes['form:current-value'] ?? attributes['form:label']
    if (text) this.#pages.add(`${text}\n`)
  }
}
