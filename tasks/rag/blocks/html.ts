import { type MarkupEvents, parseMarkup } from '../../formats/markup.ts'
import type { Block } from './block.ts'

// Elements whose content is skipped. The last two are phonetic guides (furigana) in Chinese and Japanese.
export const SKIPPED_ELEMENTS = new Set(
  'script style noscript template svg math iframe object nav rt rp'.split(' '),
)
export const INLINE_ELEMENTS = new Set(
  'a abbr acronym b bdi bdo big cite code data dfn em font i img ins kbd label mark q rp rt ruby s samp small span strike strong sub sup time tt u var wbr'.split(
    ' ',
  ),
)

// Cells do not end a paragraph, because the whole row is one paragraph.
const CELL_ELEMENTS = new Set(['td', 'th'])

/** Returns the paragraphs of an HTML page, each with its headings. `also` receives the events of the same parse. */
export function splitHtml(html: string, also?: MarkupEvents): Block[] {
  const collector = new BlockCollector()
  parseMarkup(html, 'html', also === undefined ? collector : joinEvents(collector, also))
  collector.endParagraph(html.length)
  return collector.blocks
}

const joinEvents = (one: MarkupEvents, other: MarkupEvents): MarkupEvents => ({
  open(...event) {
    one.open?.(...event)
    other.open?.(...event)
  },
  close(...event) {
    one.close?.(...event)
    other.close?.(...event)
  },
  text(...event) {
    one.text?.(...event)
    other.text?.(...event)
  },
})

class BlockCollector implements MarkupEvents {
  readonly blocks: Block[] = []
  private path: readonly string[] = []
  private words = ''
  private start = 0
  // True if the paragraph has more than white space.
  private hasText = false
  private skippedDepth = 0
  private level = 0

  open(name: string, _: unknown, at: number): void {
    if (SKIPPED_ELEMENTS.has(name)) this.skippedDepth++
    if (INLINE_ELEMENTS.has(name)) return
    if (CELL_ELEMENTS.has(name)) this.words += ' '
    else this.endParagraph(at)
    this.level = levelOf(name) ?? this.level
  }

  close(name: string, at: number): void {
    if (SKIPPED_ELEMENTS.has(name)) this.skippedDepth = Math.max(0, this.skippedDepth - 1)
    if (INLINE_ELEMENTS.has(name)) return
    if (CELL_ELEMENTS.has(name)) this.words += ' '
    else this.endParagraph(at)
    if (levelOf(name) !== null) this.level = 0
  }

  text(data: string, at: number): void {
    if (this.skippedDepth > 0) return
    if (!this.hasText) {
      this.start = at
      this.hasText = data.trim() !== ''
    }
    this.words += data
  }

  endParagraph(end: number): void {
    const text = this.words.replace(/[ \t\r\n\f\u00a0]+/g, ' ').trim()
    this.words = ''
    this.hasText = false
    if (text === '') return
    if (this.level > 0) this.path = [...this.path.slice(0, this.level - 1), text.slice(0, 200)]
    this.blocks.push({ start: this.start, end, path: this.path, text })
  }
}

function levelOf(name: string): number | null {
  return /^h[1-6]$/.test(name) ? Number(name[1]) : null
}
