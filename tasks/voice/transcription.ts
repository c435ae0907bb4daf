import { z } from 'zod'

/** A transcription as clients see it. */

const Segment = z
  .strictObject({
    start: z.number().describe('In seconds from the beginning'),
    end: z.number(),
    text: z.string(),
    speaker: z.string().nullable().describe('Null unless the model tells speakers apart'),
  })
  .meta({ id: 'TranscriptionSegment' })

const Usage = z
  .strictObject({
    input_tokens: z.int().nullable(),
    output_tokens: z.int().nullable(),
    audio_seconds: z.number().nullable(),
  })
  .meta({ id: 'TranscriptionUsage' })

/** As lists have it. */
export const TranscriptionSummary = z
  .strictObject({
    id: z.uuid(),
    status: z.enum(['pending', 'done', 'failed', 'cancelled']),
    job_id: z.uuid(),
    document_id: z.int().describe('The recording; it may have been deleted since'),
    provider: z.string(),
    model: z.string(),
    requested_language: z.string().nullable(),
    language: z
      .string()
      .nullable()
      .describe('As the model has detected it, or as requested of one that does not say'),
    duration_seconds: z.number().nullable().describe('Null of a model that does not say'),
    usage: Usage.nullable(),
    cost: z.number().nullable().describe('US dollars; null if the price is not known'),
    error: z.strictObject({ code: z.string(), detail: z.string() }).nullable(),
    created_at: z.iso.datetime(),
    completed_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'TranscriptionSummary' })

export const Transcription = TranscriptionSummary.extend({
  text: z.string().nullable(),
  segments: z.array(Segment).describe('Empty of a model that gives none'),
}).meta({ id: 'Transcription' })
export type Transcription = z.output<typeof Transcription>
