import type { SpeakingLimits } from './speaking.ts'

/** Cuts texts for speech synthesis at the ends of sentences. */

/**
 * Returns the pieces of a text, each within the limits. A sentence that exceeds them is cut between words, and a word
 * between characters.
 */
export function splitSpeech(text: string, limits: SpeakingLimits, language: string | null): string[] {
  if (fits(text, limits)) return [text]
  const locale = language ?? undefined
  const pieces: string[] = []
  let piece = ''
  for (const part of listParts(text, limits, locale)) {
    if (piece !== '' && !fits((piece + part).trim(), limits)) {
      pieces.push(piece.trim())
      piece = ''
    }
    piece += part
  }
  pieces.push(piece.trim())
  return pieces.filter((one) => one !== '')
}

const fits = (text: string, { characters, bytes }: SpeakingLimits): boolean =>
  text.length <= characters && Buffer.byteLength(text) <= bytes

const GRANULARITIES = ['sentence', 'word', 'grapheme'] as const

/** Yields the sentences of a text in order, and the parts of those that exceed the limits. */
function* listParts(
  text: string,
  limits: SpeakingLimits,
  locale: string | undefined,
  level = 0,
): Generator<string> {
  const segmenter = new Intl.Segmenter(locale, { granularity: GRANULARITIES[level]! })
  for (const { segment } of segmenter.segment(text)) {
    if (fits(segment.trim(), limits)) yield segment
    else if (level + 1 < GRANULARITIES.length) yield* listParts(segment, limits, locale, level + 1)
    // A single character with thousands of marks.
    else
      for (let at = 0; at < segment.length; at += limits.characters / 4)
        yield segment.slice(at, at + limits.characters / 4)
  }
}
