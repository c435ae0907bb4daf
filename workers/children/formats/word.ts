import { decodeXml } from '../documents/texts.ts'
import { type Archive, keepFirstOfEach } from './archive.ts'
import { holdWhole } from './held.ts'
import { countMarkup, FLAT_WORD_RULES, WORD_RULES } from './held-markup.ts'
import { countTexts } from './held-parts.ts'
import { addOfficeText, type TextOptions } from './office-text.ts'
import { type ReadEmbedded, RelatedParts } from './related.ts'
import { createPagedText, PageCollector, type PagedText } from './texts.ts'
import { Numbering, readWordStyles } from './word-styles.ts'

/** Opens Office Open XML text documents (ECMA-376, part 1). */

// Headers and footers are left out: those of all sections often are the same.
const CONTENT_TYPES = /wordprocessingml\.(footnotes|endnotes|comments)\+xml$/

/** Reads a text document: its headers, text, notes, comments and footers. @throws Unreadable. */
export async function openDocx(archive: Archive, readEmbedded?: ReadEmbedded): Promise<PagedText> {
  const main = await archive.findMainPart()
  const related = await archive.readRelations(main)
  const shown = new RelatedParts(archive, readEmbedded)
  const options: TextOptions = await readWordStyles(archive, main)
  const pages = new PageCollector()
  const addPart = async (path: string, xml: string, more: TextOptions): Promise<void> =>
    addOfficeText(xml, pages, { ...more, related: await shown.read(await shown.list(path)) })
  const addAll = async (...types: readonly string[]): Promise<void> => {
    const texts = new Map<string, string>()
    for (const { path } of keepFirstOfEach(related.filter(({ type }) => types.includes(type)))) {
      const xml = (await archive.text(path)) ?? ''
      // First, even and odd pages have separate headers, often with the same text.
      if (![...texts.values()].includes(xml)) texts.set(path, xml)
    }
    for (const [path, xml] of texts) await addPart(path, xml, { ...options, numbering: new Numbering('') })
    if (texts.size > 0) pages.endLine()
  }
  await addAll('header')
  pages.endLead()
  await addPart(main, await archive.readRequired(main), options)
  await addAll('footnotes', 'endnotes', 'comments', 'footer')
  const texts = pages.end()
  const parts = [main, ...(await archive.listParts(CONTENT_TYPES))]
  const count = (enough: number): Promise<number> => countTexts(archive, parts, WORD_RULES, enough)
  return { ...createPagedText(texts, archive, undefined, pages.markdown), holdings: holdWhole(texts, count) }
}

/** Reads a text document in the XML of Word 2003. */
export function openFlatWord(bytes: Uint8Array): PagedText {
  const pages = new PageCollector()
  addOfficeText(decodeXml(bytes), pages)
  const texts = pages.end()
  const count = (enough: number): number => countMarkup(bytes, FLAT_WORD_RULES, enough)
  return {
    ...createPagedText(texts, undefined, undefined, pages.markdown),
    holdings: holdWhole(texts, count),
  }
}
