import type { PageResult } from '../../../tasks/context.ts'
import type { PagedText, PageText } from '../formats/texts.ts'
import { findLoss, markLoss } from './losses.ts'
import { cleanMarkdown, cleanText } from './texts.ts'

/** Creates pages from the texts of documents. */

/** Creates a page from its text and Markdown. `missing` says why the text lacks content; null if it lacks none. */
export function createTextLayerPage(
  { text, markdown }: PageText,
  image: PageResult['image'],
  missing: string | null = null,
): PageResult {
  const { text: kept, detail } = cleanText(text)
  return {
    status: 'read',
    method: 'text_layer',
    model: null,
    text: kept,
    markdown: cleanMarkdown(markdown),
    detail: detail ?? missing,
    image,
  }
}

/**
 * Reads a page of a text document, and reports it if it lost nearly all of its text. `finish` adds the words of
 * pictures.
 */
export async function readTextPage(
  document: PagedText,
  pageNumber: number,
  mediaType: string,
  finish: (page: PageResult) => Promise<PageResult> = async (page) => page,
): Promise<PageResult> {
  const content = await document.read(pageNumber)
  const title = document.title?.(pageNumber) ?? ''
  const page = createTextLayerPage(content, null, document.detail?.(pageNumber) ?? null)
  const loss = page.detail === null ? await findLoss(document, pageNumber, content.text) : null
  const finished = await finish(page)
  const isBlank = finished.text.trim() === title.trim() && finished.detail === null
  const whole = isBlank ? { ...finished, detail: describeBlank(document) } : finished
  return loss === null ? whole : markLoss(whole, { kind: mediaType, ...loss }, title)
}

function describeBlank({ holdings, hasPictures = false }: PagedText): string {
  const unit = holdings?.unit === 'sheet' ? 'sheet' : 'page'
  return hasPictures ? `The ${unit} has no text, only pictures` : `The ${unit} is blank`
}
