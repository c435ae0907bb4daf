import { Parser } from 'htmlparser2'
import type { Block } from './block.ts'

/** The only importer of htmlparser2. */

const SILENT = new Set(['script', 'style', 'noscript', 'template', 'svg', 'math', 'iframe', 'object', 'nav'])
const INLINE = new Set(
  'a abbr acronym b bdi bdo big cite code data dfn em font i img ins kbd label mark q rp rt ruby s samp small span strike strong sub sup time tt u var wbr'.split(
    ' ',
  ),
)

// The parser scans all open elements at each tag: what is deeper is not a real page, and is parsed as if begun anew.
const DEEPEST = 1000

/** The text of an HTML page, paragraph by paragraph, each under its headings. */
export function htmlBlocks(html: string): Block[] {
  const said = new Said()
  for (let from = 0; from < html.length; ) from = parsed(html, from, said)
  said.close(html.length)
  return said.blocks
}

/** Parses from a position on; returns where it stopped. */
function parsed(html: string, from: number, said: Said): number {
  let depth = 0
  let stopped = false
  const parser: Parser = new Parser({
    onopentag: (name) => {
      if (stopped) return
      said.open(name, from + parser.startIndex)
      if (++depth <= DEEPEST) return
      stopped = true
      parser.pause()
    },
    onclosetag: (name) => {
      depth--
      if (!stopped) said.end(name, from + parser.startIndex)
    },
    ontext: (data) => {
      if (!stopped) said.text(data, from + parser.startIndex)
    },
  })
  parser.write(html.slice(from))
  if (stopped) return from + parser.endIndex + 1
  parser.end()
  return html.length
}

class Said {
  readonly blocks: Block[] = []
  private path: readonly string[] = []
  private words = ''
  private start = 0
  private silent = 0
  private level = 0

  open(name: string, at: number): void {
    if (SILENT.has(name)) this.silent++
    if (INLINE.has(name)) return
    this.close(at)
    this.level = levelOf(name) ?? this.level
  }

  end(name: string, at: number): void {
    if (SILENT.has(name)) this.silent = Math.max(0, this.silent - 1)
    if (INLINE.has(name)) return
    this.close(at)
    if (levelOf(name) !== null) this.level = 0
  }

  text(data: string, at: number): void {
    if (this.silent > 0) return
    if (this.words === '') this.start = at
    this.words += data
  }

  /** Ends the paragraph. */
  close(end: number): void {
    const text = this.words.replace(/[ \t\r\n\f\u00a0]+/g, ' ').trim()
    this.words = ''
    if (text === '') return
    if (this.level > 0) this.path = [...this.path.slice(0, this.level - 1), text.slice(0, 200)]
    this.blocks.push({ start: this.start, end, path: this.path, text })
  }
}

function levelOf(name: string): number | null {
  return /^h[1-6]$/.test(name) ? Number(name[1]) : null
}
