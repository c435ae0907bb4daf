import type { TextLayer } from '../pdf/pdfium.ts'
import type { ReadPage } from '../work.ts'
import { appendParagraphs, cleanText } from './texts.ts'

/** Adds the texts of a PDF page that its image does not show. */

/** Returns texts that belong to a page, but that its image does not show: remarks, and forms that viewers build. */
export function listMissingTexts(layers: TextLayer | null, pageNumber: number): readonly string[] {
  if (layers === null) return []
  return [...(pageNumber === 1 ? [layers.form] : []), ...layers.remarks(pageNumber)]
}

/** Adds texts that a page lacks, each as a paragraph. They make a page without words a page that is read. */
export function addMissingTexts(page: ReadPage, texts: readonly string[]): ReadPage {
  const bare = (text: string): string => text.replace(/\s+/g, '')
  const present = bare(page.text)
  const missing = [...new Set(texts)].filter((text) => bare(text) !== '' && !present.includes(bare(text)))
  if (missing.length === 0 || page.forModel === true) return page
  const { text } = cleanText([page.text, ...missing].filter((part) => part !== '').join('\n\n'))
  const markdown = appendParagraphs(page.markdown ?? null, missing)
  return page.status === 'read'
    ? { ...page, text, markdown }
    : { ...page, text, status: 'read', method: 'text_layer' }
}
