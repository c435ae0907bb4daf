import type { PageLoss, PageResult } from '../../../tasks/context.ts'
import { isLoss } from '../formats/held.ts'
import { estimateLetters } from '../formats/held-text.ts'
import type { PagedText } from '../formats/texts.ts'
import type { TextPage } from '../pdf/pdfium.ts'

/** Reports pages that lost nearly all of their text, although their reader found no fault. */

/** Compares a page's text with what the file holds; null if the text is there. */
export async function findLoss(
  { holdings, title }: PagedText,
  pageNumber: number,
  text: string,
): Promise<Omit<PageLoss, 'kind'> | null> {
  if (holdings === undefined) return null
  const read =
    holdings.read?.(pageNumber) ??
    Math.max(0, estimateLetters(text) - estimateLetters(title?.(pageNumber) ?? ''))
  const held = await holdings.letters(pageNumber, read)
  return isLoss(held, read) ? { unit: holdings.unit, held, read } : null
}

// Counting this many characters takes 10 ms.
const MAX_COUNTED = 100_000

/** Marks a blank page of a PDF that draws characters without shapes and without a mapping. Closes the page's layer. */
export function findUnmapped(page: PageResult, layer: TextPage | null): PageResult {
  try {
    const isUnmapped = layer !== null && layer.text(MAX_COUNTED) === null
    const held = isUnmapped ? layer.countCharacters(MAX_COUNTED) : 0
    return isLoss(held, 0) ? markLoss(page, { kind: 'application/pdf', unit: 'page', held, read: 0 }) : page
  } finally {
    layer?.close()
  }
}

/** Marks a page by its loss. A page without any other text is unread. */
export function markLoss(page: PageResult, loss: PageLoss, title = ''): PageResult {
  const { unit, held, read } = loss
  const isEmpty = estimateLetters(page.text) <= estimateLetters(title)
  const count = roundCount(held - read).toLocaleString('en')
  const detail = isEmpty
    ? `The ${unit} has about ${count} letters of text that could not be read`
    : `About ${count} letters of the ${unit} could not be read`
  return isEmpty
    ? { ...page, status: 'unread', method: 'none', text: '', detail, loss }
    : { ...page, detail, loss }
}

/** Rounds to one digit: the count is an estimate. */
const roundCount = (count: number): number => {
  const digit = 10 ** Math.max(0, Math.floor(Math.log10(count)))
  return Math.round(count / digit) * digit
}
