import { z } from 'zod'

/** Public JSON of transcriptions. */

const Segment = z
  .strictObject({
    start: z.number().describe('Seconds from the start of the recording'),
    end: z.number(),
    text: z.string(),
    speaker: z.string().nullable().describe('Null unless the model distinguishes speakers'),
    no_speech_prob: z
      .number()
      .nullable()
      .describe('Probability that the segment has no speech; null unless the model reports it'),
    avg_logprob: z
      .number()
      .nullable()
      .describe('Average logarithm of the probabilities of the words; null unless the model reports it'),
    compression_ratio: z
      .number()
      .nullable()
      .describe('High for repetitive text; null unless the model reports it'),
  })
  .meta({ id: 'TranscriptionSegment' })

const Usage = z
  .strictObject({
    input_tokens: z.int().nullable(),
    output_tokens: z.int().nullable(),
    audio_seconds: z.number().nullable(),
  })
  .meta({ id: 'TranscriptionUsage' })

/** List item without the text and segments. */
export const TranscriptionSummary = z
  .strictObject({
    id: z.uuid(),
    status: z.enum(['pending', 'done', 'failed', 'cancelled']),
    job_id: z.uuid(),
    document_id: z.int().describe('The recording, which may have been deleted since'),
    provider: z.string(),
    model: z.string(),
    requested_language: z.string().nullable(),
    language: z
      .string()
      .nullable()
      .describe('The detected language; the requested one if the model reports none'),
    duration_seconds: z.number().nullable().describe('Null if the model does not report it'),
    usage: Usage.nullable(),
    cost: z.number().nullable().describe('US dollars; null if the cost is unknown'),
    error: z.strictObject({ code: z.string(), detail: z.string() }).nullable(),
    created_at: z.iso.datetime(),
    finished_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'TranscriptionSummary' })

export const Transcription = TranscriptionSummary.extend({
  text: z.string().nullable(),
  segments: z.array(Segment).describe('Empty if the model returns none'),
}).meta({ id: 'Transcription' })
export type Transcription = z.output<typeof Transcription>
