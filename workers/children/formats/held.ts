import { estimateLetters } from './held-text.ts'

/** Tells what a document holds, counted without its reader. A page with far fewer letters has lost its text. */

export interface Holdings {
  readonly unit: 'page' | 'sheet' | 'slide' | 'document' | 'mail'
  /** Counts the letters that the file holds for a page of which `read` letters came out. */
  letters(page: number, read: number): number | Promise<number>
  /** Counts the letters that came out, if the page has others than those of `letters`, such as headers. */
  read?(page: number): number
}

// Bounds of a loss. Files of the test collections of Office and OpenDocument programs come to at least 40 %.
const MIN_HELD = 20
const MAX_LOST_SHARE = 0.1

/** True if hardly any of the held letters came out. */
export const isLoss = (held: number, read: number): boolean =>
  held >= MIN_HELD && read < held * MAX_LOST_SHARE

/** Returns the number of held letters up to which this many read letters are no loss. */
export const findEnough = (read: number): number => Math.max(MIN_HELD - 1, read / MAX_LOST_SHARE)

/**
 * Attributes what a document holds to its first page if hardly anything came out on all pages. `count` may stop once
 * there cannot be more than `enough` letters.
 */
export function holdWhole(
  pages: readonly string[],
  count: (enough: number) => number | Promise<number>,
): Holdings {
  return {
    unit: 'document',
    async letters(page) {
      if (page !== 1) return 0
      const read = pages.reduce((sum, text) => sum + estimateLetters(text), 0)
      const held = await count(findEnough(read))
      return isLoss(held, read) ? held : 0
    },
  }
}
