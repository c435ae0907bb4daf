import { type MarkupEvents, readMarkup } from '../../markup.ts'
import type { Block } from './block.ts'

// The last two are how Chinese and Japanese words are spoken, which stands amid them.
const SILENT = new Set('script style noscript template svg math iframe object nav rt rp'.split(' '))
const INLINE = new Set(
  'a abbr acronym b bdi bdo big cite code data dfn em font i img ins kbd label mark q rp rt ruby s samp small span strike strong sub sup time tt u var wbr'.split(
    ' ',
  ),
)

// Their row is a paragraph.
const CELLS = new Set(['td', 'th'])

/** The text of an HTML page, paragraph by paragraph, each under its headings. */
export function htmlBlocks(html: string): Block[] {
  const said = new Said()
  readMarkup(html, 'html', said)
  said.end(html.length)
  return said.blocks
}

class Said implements MarkupEvents {
  readonly blocks: Block[] = []
  private path: readonly string[] = []
  private words = ''
  private start = 0
  // Whether the paragraph has more than white space.
  private begun = false
  private silent = 0
  private level = 0

  open(name: string, _: unknown, at: number): void {
    if (SILENT.has(name)) this.silent++
    if (INLINE.has(name)) return
    if (CELLS.has(name)) this.words += ' '
    else this.end(at)
    this.level = levelOf(name) ?? this.level
  }

  close(name: string, at: number): void {
    if (SILENT.has(name)) this.silent = Math.max(0, this.silent - 1)
    if (INLINE.has(name)) return
    if (CELLS.has(name)) this.words += ' '
    else this.end(at)
    if (levelOf(name) !== null) this.level = 0
  }

  text(data: string, at: number): void {
    if (this.silent > 0) return
    if (!this.begun) {
      this.start = at
      this.begun = data.trim() !== ''
    }
    this.words += data
  }

  /** Ends the paragraph. */
  end(end: number): void {
    const text = this.words.replace(/[ \t\r\n\f\u00a0]+/g, ' ').trim()
    this.words = ''
    this.begun = false
    if (text === '') return
    if (this.level > 0) this.path = [...this.path.slice(0, this.level - 1), text.slice(0, 200)]
    this.blocks.push({ start: this.start, end, path: this.path, text })
  }
}

function levelOf(name: string): number | null {
  return /^h[1-6]$/.test(name) ? Number(name[1]) : null
}
