import { z } from 'zod'

/** The place and size of a word, as shares of the width and height of its page, from its left and top. */
export const PlacedWord = z.strictObject({
  text: z.string(),
  left: z.number(),
  top: z.number(),
  width: z.number(),
  height: z.number(),
})

/** Returns a text without case and accents. */
export const foldText = (text: string): string => text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
