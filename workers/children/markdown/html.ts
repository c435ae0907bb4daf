import type { MarkupEvents } from '../../../tasks/formats/markup.ts'
import { INLINE_ELEMENTS, SKIPPED_ELEMENTS, splitHtml } from '../../../tasks/rag/blocks/html.ts'
import type { PageText } from '../formats/texts.ts'
import { MarkdownBuilder } from './builder.ts'

/** Reads HTML pages, with their Markdown. */

/** Reads the text of an HTML page, with a blank line between paragraphs. */
export function readHtmlPage(html: string): PageText {
  const markdown = new HtmlMarkdown()
  const text = splitHtml(html, markdown)
    .map((block) => block.text)
    .join('\n\n')
  return { text, markdown: markdown.end() }
}

/** An open list: the number of its next item, or null if it has bullets. */
interface List {
  next: number | null
}

class HtmlMarkdown implements MarkupEvents {
  readonly #builder = new MarkdownBuilder()
  readonly #lists: List[] = []
  // Depths of skipped elements, of cells that are no headers, and of preformatted text.
  #skipped = 0
  #cells = 0
  #code = 0

  open(name: string, attributes: Readonly<Record<string, string>>): void {
    if (SKIPPED_ELEMENTS.has(name)) this.#skipped++
    if (this.#skipped > 0 || INLINE_ELEMENTS.has(name)) return
    if (name === 'br') this.#builder.addBreak()
    else if (!this.#openTablePart(name, attributes)) this.#openBlock(name, attributes)
  }

  text(data: string): void {
    if (this.#skipped > 0) return
    this.#builder.add(this.#code > 0 ? data : data.replace(/[ \t\r\n\f\u00a0]+/g, ' '))
  }

  close(name: string): void {
    if (SKIPPED_ELEMENTS.has(name)) this.#skipped = Math.max(0, this.#skipped - 1)
    if (this.#skipped > 0 || INLINE_ELEMENTS.has(name) || name === 'br') return
    if (name === 'table') this.#builder.closeTable()
    else if (name === 'td' || name === 'th') {
      this.#builder.closeCell()
      if (name === 'td') this.#cells = Math.max(0, this.#cells - 1)
    } else if (this.#code === 0 || name === 'pre') this.#builder.endBlock()
    if (name === 'pre') this.#code = Math.max(0, this.#code - 1)
    else if (name === 'ul' || name === 'ol') this.#lists.pop()
    else if (name !== 'li') return
    this.#builder.listDepth = Math.max(0, this.#lists.length - (name === 'li' ? 1 : 0))
  }

  end(): string | null {
    return this.#builder.end()
  }

  /** Handles the elements of tables; false for others. */
  #openTablePart(name: string, { colspan, rowspan }: Readonly<Record<string, string>>): boolean {
    if (name === 'table') this.#builder.openTable()
    else if (name === 'tr') this.#builder.openRow()
    else if (name === 'td' || name === 'th') {
      if (name === 'td') this.#cells++
      this.#builder.openCell(Number(colspan), Number(rowspan))
    } else return false
    return true
  }

  #openBlock(name: string, { start, value }: Readonly<Record<string, string>>): void {
    const builder = this.#builder
    if (/^h[1-6]$/.test(name)) {
      if (this.#cells > 0) builder.unwrapTable()
      builder.begin({ kind: 'heading', level: Number(name[1]) })
    } else if (name === 'pre') {
      this.#code++
      builder.begin({ kind: 'code' })
    } else if (name === 'ul' || name === 'ol') {
      builder.endBlock()
      this.#lists.push({ next: name === 'ul' ? null : (parseNumber(start) ?? 1) })
    } else if (name === 'li') this.#openItem(parseNumber(value))
    // A paragraph that begins an item or a heading belongs to it.
    else if (!builder.isBlank && this.#code === 0) builder.endBlock()
  }

  #openItem(value: number | null): void {
    const list = this.#lists.at(-1)
    const number = list?.next == null ? null : (value ?? list.next)
    if (list !== undefined && number !== null) list.next = number + 1
    const depth = Math.max(0, this.#lists.length - 1)
    this.#builder.begin({ kind: 'item', depth, marker: number === null ? '-' : `${number}.` })
    this.#builder.listDepth = depth + 1
  }
}

/** Returns a number that a list may have; null for others. */
const parseNumber = (text = ''): number | null => (/^\d{1,9}$/.test(text.trim()) ? Number(text) : null)
