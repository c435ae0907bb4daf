import { parseMarkup } from '../../../tasks/formats/markup.ts'
import { MAX_CHARACTERS } from '../documents/texts.ts'
import { Unreadable } from '../images/images.ts'
import { Archive, stripNamespacePrefix } from './archive.ts'
import { createPagedText, PageCollector, type PagedText } from './texts.ts'

/** Opens OpenDocument files (ISO/IEC 26300-3): texts, spreadsheets and presentations. */

const PARAGRAPH_ELEMENTS = new Set(['p', 'h'])
// Skip the contents of these elements: deleted text and phonetic guides (furigana).
const SKIPPED_ELEMENTS = new Set(['tracked-changes', 'ruby-text'])
const HEADER_OR_FOOTER = /^(header|footer)(-left|-first)?$/
const MAX_SPACES = 100
// Limits of expanded repetitions. A file may repeat an empty cell to the end of its row, and an empty row to the end of
// the sheet.
const MAX_CELLS = 100
const MAX_ROWS = 1000

/**
 * The element that starts a page, and the attribute with the page's title, if any. Text documents mark page breaks
 * instead.
 */
const PAGE_ELEMENTS: Readonly<Record<string, readonly [element: string, name: string]>> = {
  spreadsheet: ['table', 'table:name'],
  presentation: ['page', ''],
}

export async function openOpenDocument(bytes: Uint8Array, mediaType: string): Promise<PagedText> {
  const archive = await Archive.open(bytes)
  if ((await archive.text('META-INF/manifest.xml'))?.includes('encryption-data'))
    throw new Unreadable('The document is encrypted')
  const pages = new PageCollector()
  const page = PAGE_ELEMENTS[/opendocument\.([a-z]+)/.exec(mediaType)?.[1] ?? '']
  if (page === undefined) {
    addText((await archive.text('styles.xml')) ?? '', pages, { only: HEADER_OR_FOOTER })
    pages.endLine()
  }
  addText(await archive.readRequired('content.xml'), pages, page === undefined ? {} : { page })
  return createPagedText(pages.end(), archive)
}

interface TextSelection {
  /** Restricts the text to elements with matching names. */
  readonly only?: RegExp
  readonly page?: readonly [element: string, name: string]
}

type Attributes = Readonly<Record<string, string>>

const parseRepeat = (repeated: string | undefined, max: number): number =>
  Math.min(Number(repeated ?? 1) || 1, max)

/** A row of a sheet. The file stores a run of equal rows or cells once, with a count; this class expands it. */
class Row {
  #text = ''
  #cell = ''
  #cells = 1
  #rows = 1

  begin(attributes: Attributes): void {
    this.#text = ''
    this.#rows = parseRepeat(attributes['table:number-rows-repeated'], MAX_ROWS)
  }

  beginCell(attributes: Attributes): void {
    this.#cell = ''
    this.#cells = parseRepeat(attributes['table:number-columns-repeated'], MAX_CELLS)
  }

  add(text: string): void {
    if (this.#cell.length <= MAX_CHARACTERS) this.#cell += text
  }

  endCell(): void {
    for (let n = 0; n < this.#cells && this.#text.length <= MAX_CHARACTERS; n++)
      this.#text += `${this.#cell}\t`
  }

  end(pages: PageCollector): void {
    // Trailing empty cells and repeated empty rows would use up the page's character limit.
    const text = this.#text.trimEnd()
    const rows = text === '' ? 1 : this.#rows
    for (let n = 0; n < rows; n++) pages.add(`${text}\n`)
  }
}

function addText(xml: string, pages: PageCollector, { only, page }: TextSelection): void {
  let within = only === undefined ? 1 : 0
  let [paragraphs, silent, cells, pageDepth] = [0, 0, 0, 0]
  let style = ''
  // Only sheets have rows. A cell includes the text of the tables nested in it.
  const row = page?.[0] === 'table' ? new Row() : null
  // A covered cell is hidden by a merged one, but still takes up a column.
  const isCell = (name: string): boolean =>
    name === 'table-cell' || (row !== null && name === 'covered-table-cell')
  const add = (text: string): void => (cells > 0 ? (row ?? pages) : pages).add(text)
  // Paragraph styles that start a new page.
  const pageBreakStyles = new Set<string | undefined>()
  parseMarkup(xml, 'xml', {
    open(qualified, attributes) {
      const name = stripNamespacePrefix(qualified)
      if (only?.test(name)) within++
      if (SKIPPED_ELEMENTS.has(name)) silent++
      if (name === page?.[0] && pageDepth++ === 0) {
        pages.endPage()
        pages.add(`${attributes[page[1]] ?? ''}\n`)
      }
      if (name === 'style') style = attributes['style:name'] ?? ''
      else if (attributes['fo:break-before'] === 'page') pageBreakStyles.add(style)
      if (PARAGRAPH_ELEMENTS.has(name)) {
        paragraphs++
        if (pageBreakStyles.has(attributes['text:style-name'])) pages.endPage()
      }
      if (row !== null && cells === 0 && name === 'table-row') row.begin(attributes)
      if (isCell(name)) {
        if (cells++ === 0) row?.beginCell(attributes)
      } else if (name === 'soft-page-break') pages.endPage()
      else if (paragraphs === 0 || silent > 0 || within === 0) return
      else if (name === 's') add(' '.repeat(parseRepeat(attributes['text:c'], MAX_SPACES)))
      else if (name === 'tab') add('\t')
      else if (name === 'line-break') add('\n')
    },
    text(data) {
      if (paragraphs > 0 && silent === 0 && within > 0) add(data.replace(/[ \t\r\n]+/g, ' '))
    },
    close(qualified) {
      const name = stripNamespacePrefix(qualified)
      if (only?.test(name)) within--
      if (SKIPPED_ELEMENTS.has(name)) silent--
      if (name === page?.[0]) pageDepth--
      if (PARAGRAPH_ELEMENTS.has(name)) {
        paragraphs--
        if (silent === 0 && within > 0) add(cells > 0 ? ' ' : '\n')
      } else if (isCell(name)) {
        cells--
        if (row !== null && cells === 0) row.endCell()
        else add('\t')
      } else if (name === 'table-row') {
        if (row === null) pages.endLine()
        else if (cells === 0) row.end(pages)
        else add('\n')
      }
    },
  })
}
