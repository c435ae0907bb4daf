import { readMarkup } from '../../../../tasks/markup.ts'
import { Unreadable } from '../images.ts'
import { Archive, localName } from './archive.ts'
import { Pages, type Texts, textsOf } from './texts.ts'

/** Files of OpenDocument (ISO/IEC 26300-3): texts, spreadsheets and presentations. */

const PARAGRAPHS = new Set(['p', 'h'])
// What was deleted, and how words are spoken.
const SILENT = new Set(['tracked-changes', 'ruby-text'])
const REGIONS = /^(header|footer)(-left|-first)?$/
// An empty cell may be repeated to the end of its row.
const MOST_SPACES = 100

/** The element with which a page begins, and the attribute that names it; texts note where a page ended instead. */
const PAGE_OF: Readonly<Record<string, readonly [element: string, name: string]>> = {
  spreadsheet: ['table', 'table:name'],
  presentation: ['page', ''],
}

export async function openOpenDocument(bytes: Uint8Array, mediaType: string): Promise<Texts> {
  const archive = await Archive.open(bytes)
  if ((await archive.text('META-INF/manifest.xml'))?.includes('encryption-data'))
    throw new Unreadable('The document is encrypted')
  const pages = new Pages()
  const page = PAGE_OF[/opendocument\.([a-z]+)/.exec(mediaType)?.[1] ?? '']
  if (page === undefined) {
    addText((await archive.text('styles.xml')) ?? '', pages, { only: REGIONS })
    pages.line()
  }
  addText(await archive.needed('content.xml'), pages, page === undefined ? {} : { page })
  return textsOf(pages.end())
}

interface Which {
  /** Only what is in such elements. */
  readonly only?: RegExp
  readonly page?: readonly [element: string, name: string]
}

function addText(xml: string, pages: Pages, { only, page }: Which): void {
  let within = only === undefined ? 1 : 0
  let [paragraphs, silent, cells, pageDepth] = [0, 0, 0, 0]
  let style = ''
  // Styles of paragraphs that begin a page.
  const breaking = new Set<string | undefined>()
  readMarkup(xml, 'xml', {
    open(qualified, attributes) {
      const name = localName(qualified)
      if (only?.test(name)) within++
      if (SILENT.has(name)) silent++
      if (name === page?.[0] && pageDepth++ === 0) {
        pages.break()
        pages.add(`${attributes[page[1]] ?? ''}\n`)
      }
      if (name === 'style') style = attributes['style:name'] ?? ''
      else if (attributes['fo:break-before'] === 'page') breaking.add(style)
      if (PARAGRAPHS.has(name)) {
        paragraphs++
        if (breaking.has(attributes['text:style-name'])) pages.break()
      }
      if (name === 'table-cell') cells++
      else if (name === 'soft-page-break') pages.break()
      else if (paragraphs === 0 || silent > 0 || within === 0) return
      else if (name === 's')
        pages.add(' '.repeat(Math.min(Number(attributes['text:c'] ?? 1) || 1, MOST_SPACES)))
      else if (name === 'tab') pages.add('\t')
      else if (name === 'line-break') pages.add('\n')
    },
    text(data) {
      if (paragraphs > 0 && silent === 0 && within > 0) pages.add(data.replace(/[ \t\r\n]+/g, ' '))
    },
    close(qualified) {
      const name = localName(qualified)
      if (only?.test(name)) within--
      if (SILENT.has(name)) silent--
      if (name === page?.[0]) pageDepth--
      if (PARAGRAPHS.has(name)) {
        paragraphs--
        if (silent === 0 && within > 0) pages.add(cells > 0 ? ' ' : '\n')
      } else if (name === 'table-cell') {
        cells--
        pages.add('\t')
      } else if (name === 'table-row') pages.line()
    },
  })
}
