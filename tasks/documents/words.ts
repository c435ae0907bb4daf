import { z } from 'zod'

/** The place and size of a word, as shares of the width and height of its page, from its left and top. */
export const PlacedWord = z.strictObject({
  text: z.string(),
  left: z.number(),
  top: z.number(),
  width: z.number(),
  height: z.number(),
})

type Placed = z.output<typeof PlacedWord>

// A result stays in the ledger and in streams.
const MAX_FOUND_WORDS = 300

/** Returns the words that contain one of the folded parts, at most 300. */
export const findWords = (words: readonly Placed[], parts: readonly string[]): Placed[] =>
  words
    .filter(({ text }) => {
      const folded = foldText(text)
      return parts.some((part) => folded.includes(part))
    })
    .slice(0, MAX_FOUND_WORDS)

/** Returns a text without case and accents. */
export const foldText = (text: string): string => text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
