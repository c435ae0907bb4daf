import { toStorable } from '../ai/deltas.ts'
import { ExactDecimal } from '../llm/cost.ts'
import { computeRecognitionCost } from './cost.ts'
import type { Segment, Transcript } from './ports.ts'
import type { Transcription } from './transcription.ts'

/** The answer for a piece of a recording, in its public form. Times start with the piece. */
export interface Part extends Pick<Transcription, 'language' | 'duration_seconds' | 'segments'> {
  readonly text: string
  readonly usage: NonNullable<Transcription['usage']>
  /** US dollars as an exact decimal; null if unknown. */
  readonly cost: string | null
}

/** A part with its place in the recording, in seconds. */
export interface PlacedPart {
  readonly start: number
  /** Null if only the provider knows the duration. */
  readonly end: number | null
  readonly part: Part
}

export function createPart(model: string, { text, segments, used, ...one }: Transcript): Part {
  return {
    text: toStorable(text),
    language: one.language && toStorable(one.language),
    duration_seconds: one.durationSeconds,
    segments: segments.map(toPublicSegment),
    usage: {
      input_tokens: used.inputTokens,
      output_tokens: used.outputTokens,
      audio_seconds: used.audioSeconds,
    },
    cost: computeRecognitionCost(model, used),
  }
}

const toPublicSegment = (one: Segment): Transcription['segments'][number] => ({
  start: one.start,
  end: one.end,
  text: toStorable(one.text),
  speaker: one.speaker && toStorable(one.speaker),
  no_speech_prob: one.noSpeechProb,
  avg_logprob: one.avgLogprob,
  compression_ratio: one.compressionRatio,
})

/** Joins the parts of a recording, in order. A single part stays as it is. */
export function joinParts(placed: readonly PlacedPart[]): Part {
  const [first] = placed
  if (placed.length === 1) return first!.part
  const parts = placed.map(({ part }) => part)
  const costs = parts.map(({ cost }) => cost)
  const partsWithLanguage = parts.filter(({ language }) => language !== null)
  // Models name a language for silence, too.
  const { language = null } =
    partsWithLanguage.find(({ text }) => text.trim() !== '') ?? partsWithLanguage[0] ?? {}
  const sumUsage = (key: keyof Part['usage']) => sumKnown(parts.map(({ usage }) => usage[key]))
  return {
    text: parts.reduce((text, part) => text + separatorAfter(text) + part.text, ''),
    language,
    duration_seconds: placed.at(-1)!.end,
    segments: placed.flatMap(({ start, part }, index) =>
      part.segments.map((segment) => placeSegment(segment, start, index)),
    ),
    usage: {
      input_tokens: sumUsage('input_tokens'),
      output_tokens: sumUsage('output_tokens'),
      audio_seconds: sumUsage('audio_seconds'),
    },
    cost: costs.includes(null)
      ? null
      : costs.reduce((sum, cost) => sum.plus(cost!), new ExactDecimal(0)).toFixed(),
  }
}

/** Moves a segment to its place. Models name the speakers of each piece separately, so later names have its number. */
function placeSegment(
  segment: Part['segments'][number],
  start: number,
  index: number,
): Part['segments'][number] {
  const speaker =
    segment.speaker === null || index === 0 ? segment.speaker : `${segment.speaker} (${index + 1})`
  return { ...segment, speaker, start: shift(segment.start, start), end: shift(segment.end, start) }
}

// Milliseconds, because sums of fractions have many digits.
const shift = (seconds: number, by: number): number => Math.round((seconds + by) * 1000) / 1000

/** Returns the separator between a text and the next one: none after scripts without spaces. */
export const separatorAfter = (text: string): '' | ' ' =>
  text === '' ||
  /[\s\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Khmr}\p{sc=Laoo}\p{sc=Mymr}、。，！？…]$/u.test(text)
    ? ''
    : ' '

/** Returns the sum; null if a number is unknown. */
function sumKnown(numbers: readonly (number | null)[]): number | null {
  if (numbers.includes(null)) return null
  const sum = numbers.reduce<number>((total, number) => total + number!, 0)
  return Math.round(sum * 1000) / 1000
}
