import { parseMarkup } from '../../../tasks/formats/markup.ts'
import { Archive, keepFirstOfEach, stripNamespacePrefix } from './archive.ts'
import { createPagedText, PageCollector, type PagedText } from './texts.ts'

/** Opens Office Open XML text documents and presentations (ECMA-376, part 1). */

// Skip these elements: properties, which contain elements with the same names as text (such as `tab`), duplicates
// (`Fallback`), moved text and phonetic guides (`rt`).
const SKIPPED_ELEMENTS = new Set(['pPr', 'rPr', 'tblPr', 'Fallback', 'moveFrom', 'rt'])
const isOff = (value: string | undefined): boolean => /^(0|false|off)$/.test(value ?? '')

/** Adds the text of a part, split at page breaks, including those that a word processor recorded at its last layout. */
function addPart(xml: string, pages: PageCollector): void {
  let silent = 0
  let isText = false
  let cells = 0
  parseMarkup(xml, 'xml', {
    open(qualified, attributes) {
      const name = stripNamespacePrefix(qualified)
      if (name === 'pageBreakBefore' && !isOff(attributes['w:val'])) pages.endPage()
      if (SKIPPED_ELEMENTS.has(name)) silent++
      if (silent > 0) return
      if (name === 't') isText = true
      else if (name === 'tab') pages.add('\t')
      else if (name === 'noBreakHyphen') pages.add('-')
      else if (name === 'br' && attributes['w:type'] === 'page') pages.endPage()
      else if (name === 'br' || name === 'cr') pages.add('\n')
      else if (name === 'lastRenderedPageBreak') pages.endPage()
      else if (name === 'tc') cells++
    },
    text(data) {
      if (isText && silent === 0) pages.add(data)
    },
    close(qualified) {
      const name = stripNamespacePrefix(qualified)
      if (SKIPPED_ELEMENTS.has(name)) silent--
      if (silent > 0) return
      if (name === 't') isText = false
      else if (name === 'p') pages.add(cells > 0 ? ' ' : '\n')
      else if (name === 'tc') {
        cells--
        pages.add('\t')
      } else if (name === 'tr') pages.endLine()
    },
  })
}

/** Opens a text document and reads its headers, text, notes, comments and footers. @throws Unreadable. */
export async function openDocx(bytes: Uint8Array): Promise<PagedText> {
  const archive = await Archive.open(bytes)
  const main = await archive.findMainPart()
  const related = await archive.readRelations(main)
  const pages = new PageCollector()
  const addAll = async (types: readonly string[]): Promise<void> => {
    const texts = new Set<string>()
    for (const { path } of keepFirstOfEach(related.filter(({ type }) => types.includes(type))))
      texts.add((await archive.text(path)) ?? '')
    // First, even and odd pages have separate headers, often with the same text.
    for (const xml of texts) addPart(xml, pages)
    if (texts.size > 0) pages.endLine()
  }
  await addAll(['header'])
  addPart(await archive.readRequired(main), pages)
  await addAll(['footnotes', 'endnotes', 'comments', 'footer'])
  return createPagedText(pages.end(), archive)
}

/** Opens a presentation: one page per slide, with its diagrams and speaker notes. @throws Unreadable. */
export async function openPptx(bytes: Uint8Array): Promise<PagedText> {
  const archive = await Archive.open(bytes)
  const main = await archive.findMainPart()
  const paths = new Map((await archive.readRelations(main)).map(({ id, path }) => [id, path]))
  const named: { readonly path: string }[] = []
  parseMarkup(await archive.readRequired(main), 'xml', {
    open: (name, attributes) => {
      const path = stripNamespacePrefix(name) === 'sldId' ? paths.get(attributes['r:id'] ?? '') : undefined
      if (path !== undefined) named.push({ path })
    },
  })
  const seen = new Set<string>()
  const slides: (readonly string[])[] = []
  for (const { path } of keepFirstOfEach(named, seen)) {
    const related = (await archive.readRelations(path)).filter(
      ({ type }) => type === 'diagramData' || type === 'notesSlide',
    )
    slides.push([path, ...keepFirstOfEach(related, seen).map((part) => part.path)])
  }
  return {
    pageCount: Math.max(1, slides.length),
    unpackedBytes: archive.unpackedBytes,
    async text(page) {
      const pages = new PageCollector()
      for (const path of slides[page - 1] ?? []) {
        addPart((await archive.text(path)) ?? '', pages)
        pages.add('\n')
      }
      return pages.end().join('\n')
    },
  }
}
