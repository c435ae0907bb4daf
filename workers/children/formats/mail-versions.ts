import type { PageText } from './texts.ts'

/** Chooses between versions of one text, such as the plain and the HTML part of a mail. */

// Converters differ in a few words, such as the labels of links.
const MAX_MISSING_SHARE = 0.05
// The richer version replaces the other one if it has this share of its words.
const MIN_COMMON_SHARE = 0.7
// A shorter text that speaks of HTML only says that the mail has an HTML part.
const MAX_STUB_WORDS = 60

/**
 * Returns the plain text if it has the words of the rich one, else the rich one. If each has a text of its own, returns
 * both.
 */
export function chooseVersion(plain: string, rich: string): string {
  const [plainWords, richWords] = [wordsOf(plain), wordsOf(rich)]
  if (richWords.size === 0) return plainWords.size === 0 && plain.trim() === '' ? rich : plain
  const missing = [...richWords].filter((word) => !plainWords.has(word))
  const lacksNumber = missing.some((word) => /\p{N}/u.test(word))
  if (!lacksNumber && missing.length <= MAX_MISSING_SHARE * richWords.size) return plain
  const common = [...plainWords].filter((word) => richWords.has(word)).length
  const isCovered = common >= MIN_COMMON_SHARE * plainWords.size || isStub(plain, plainWords)
  return isCovered ? rich : `${plain.trim()}\n\n${rich}`
}

/** Returns the Markdown of the rich version; null if that lacks words of the plain one. */
export const chooseMarkdown = (plain: string, rich: PageText): string | null =>
  rich.markdown !== null && chooseVersion(rich.text, plain) === rich.text ? rich.markdown : null

const isStub = (text: string, words: ReadonlySet<string>): boolean =>
  words.size <= MAX_STUB_WORDS && /\bhtml\b/i.test(text)

// Scripts without spaces have no words, so each of their characters counts.
const WORD = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{M}\p{N}]+/gu

// Addresses of links are only in the plain version.
const wordsOf = (text: string): ReadonlySet<string> =>
  new Set(
    text
      .replace(/\b(?:https?|mailto|cid):\S+/gi, ' ')
      .toLowerCase()
      .match(WORD) ?? [],
  )
