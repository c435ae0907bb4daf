import { z } from 'zod'
import type { Segment, Transcript } from '../../../tasks/voice/ports.ts'
import { UNREADABLE_REASON, Unreadable } from '../ai/ai-calls.ts'
import { findLanguageTag } from './languages.ts'

/** Parses the transcripts of providers, and leaves out words that a model has heard in silence. */

const Amount = z.coerce.number().min(0)
// Usage beyond these limits cannot be true: a recording lasts at most a week, and no context window is larger.
const MAX_SECONDS = 7 * 24 * 3600
const MAX_TOKENS = 10_000_000
// Usage is optional: an impossible number counts as none, and does not cost the transcript.
const UsedSeconds = Amount.max(MAX_SECONDS).nullish().catch(null)
const UsedTokens = z.int().min(0).max(MAX_TOKENS).nullish().catch(null)
// Signs of doubt are optional, too.
const Doubt = z.number().nullish().catch(null)
const AnsweredSegment = z.object({
  start: Amount,
  end: Amount,
  text: z.string(),
  speaker: z.string().nullish(),
  speaker_id: z.string().nullish(),
  no_speech_prob: Doubt,
  avg_logprob: Doubt,
  compression_ratio: Doubt,
})
const Answer = z.object({
  text: z.string(),
  language: z.string().nullish(),
  languages: z.array(z.object({ code: z.string() })).nullish(),
  duration: UsedSeconds,
  segments: z.array(AnsweredSegment).nullish(),
  // OpenAI reports tokens or seconds, Mistral both, Groq neither.
  usage: z
    .object({
      input_tokens: UsedTokens,
      output_tokens: UsedTokens,
      prompt_tokens: UsedTokens,
      completion_tokens: UsedTokens,
      seconds: UsedSeconds,
      prompt_audio_seconds: UsedSeconds,
    })
    .nullish()
    .catch(null),
})

/** Returns the transcript of an answer. @throws Unreadable */
export function parseTranscript(answer: unknown): Transcript {
  const read = Answer.safeParse(answer)
  if (!read.success) throw new Unreadable(UNREADABLE_REASON, { cause: read.error })
  const { language, languages, usage } = read.data
  const seconds = usage?.seconds ?? usage?.prompt_audio_seconds ?? null
  const duration = read.data.duration ?? seconds
  return {
    ...dropSilence(read.data.text, (read.data.segments ?? []).map(toSegment)),
    language: findLanguageTag(language ?? languages?.[0]?.code),
    durationSeconds: duration,
    used: {
      inputTokens: usage?.input_tokens ?? usage?.prompt_tokens ?? null,
      outputTokens: usage?.output_tokens ?? usage?.completion_tokens ?? null,
      audioSeconds: seconds ?? duration,
    },
  }
}

const toSegment = (one: z.output<typeof AnsweredSegment>): Segment => ({
  start: one.start,
  end: one.end,
  text: one.text,
  speaker: one.speaker ?? one.speaker_id ?? null,
  noSpeechProb: one.no_speech_prob ?? null,
  avgLogprob: one.avg_logprob ?? null,
  compressionRatio: one.compression_ratio ?? null,
})

// The thresholds of Whisper itself (github.com/openai/whisper, whisper/transcribe.py). Models invent words for silence.
const MAX_NO_SPEECH_PROB = 0.6
const MIN_AVG_LOGPROB = -1

const isSilence = ({ noSpeechProb, avgLogprob }: Segment): boolean =>
  noSpeechProb !== null &&
  avgLogprob !== null &&
  noSpeechProb > MAX_NO_SPEECH_PROB &&
  avgLogprob < MIN_AVG_LOGPROB

/** Leaves out segments of silence. The text stays as it is if it has none. */
function dropSilence(text: string, segments: readonly Segment[]): Pick<Transcript, 'text' | 'segments'> {
  const kept = segments.filter((one) => !isSilence(one))
  if (kept.length === segments.length) return { text, segments }
  // The segments of most models contain the spaces between them.
  const hasSpaces = joinTexts(segments, '') === text.trim()
  return { text: joinTexts(kept, hasSpaces ? '' : ' '), segments: kept }
}

function joinTexts(segments: readonly Segment[], separator: '' | ' '): string {
  const texts = segments.map(({ text }) => (separator === '' ? text : text.trim()))
  return texts.join(separator).trim()
}
