/** Places of words on the image of their page. */
import type { PlacedWord } from '../../../tasks/context.ts'

/** Maximum number of words with places on a page. A page of a dictionary has about 2,000. */
export const MAX_PLACED_WORDS = 5000

/** A box in shares of the page's width and height, from its left and top. */
export interface Box {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

/** Returns a word with its place, to four decimals: half a pixel of an A4 page at 600 dpi. */
export const placeWord = (text: string, { left, top, right, bottom }: Box): PlacedWord => ({
  text: text.toWellFormed(),
  left: round(left),
  top: round(top),
  width: round(right - left),
  height: round(bottom - top),
})

const round = (share: number): number => (Number.isFinite(share) ? Math.round(share * 10_000) / 10_000 : 0)
