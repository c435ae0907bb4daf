import type { SpeakingLimits } from './speaking.ts'

/** Cuts texts for speech synthesis at the ends of sentences. */

/**
 * Returns the pieces of a text, each within the limits. A sentence that exceeds them is cut between words, and a word
 * between characters.
 */
export function splitSpeech(text: string, limits: SpeakingLimits, language: string | null): string[] {
  if (fits(text, limits)) return [text]
  // Without the space at their ends.
  const pieces: { readonly from: Place; to: Place }[] = []
  let at = START
  for (const part of listParts(text, limits, language ?? undefined)) {
    const words = part.trim()
    const from = move(at, part.slice(0, part.length - part.trimStart().length))
    const to = move(from, words)
    at = move(to, part.slice(to.characters - at.characters))
    if (words === '') continue
    const last = pieces.at(-1)
    if (last !== undefined && isWithin(last.from, to, limits)) last.to = to
    else pieces.push({ from, to })
  }
  return pieces.map(({ from, to }) => text.slice(from.characters, to.characters))
}

/** A place in the text: the size of the text before it. Measuring all of a piece for each part would take seconds. */
type Place = SpeakingLimits

const START: Place = { characters: 0, bytes: 0 }

const move = ({ characters, bytes }: Place, part: string): Place => ({
  characters: characters + part.length,
  bytes: bytes + Buffer.byteLength(part),
})

const isWithin = (from: Place, to: Place, { characters, bytes }: SpeakingLimits): boolean =>
  to.characters - from.characters <= characters && to.bytes - from.bytes <= bytes

const fits = (text: string, limits: SpeakingLimits): boolean => isWithin(START, move(START, text), limits)

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
    // A single character with thousands of marks, of which some have two units.
    else yield* segment.match(new RegExp(`.{1,${limits.characters / 4}}`, 'gsu'))!
  }
}
