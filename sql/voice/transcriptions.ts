import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Transcriptions. `voice/tables.sql` has their table, and `voice_transcription_settle` records their outcome. */

/** A transcription to add. */
export interface NewTranscription {
  readonly id: string
  readonly ownerId: number | null
  readonly documentId: number
  readonly jobId: string
  readonly provider: string
  readonly model: string
  readonly language: string | null
  readonly prompt: string | null
}

export const insertTranscription = (t: NewTranscription): Query<unknown> =>
  sql.type(noRows)`
    insert into voice_transcription (id, owner_id, document_id, job_id, provider, model, requested_language, prompt)
    values (${t.id}::uuid, ${t.ownerId}, ${t.documentId}, ${t.jobId}::uuid, ${t.provider}, ${t.model}, ${t.language}, ${t.prompt})`

const StartedTranscription = z.object({
  requested_language: z.string().nullable(),
  prompt: z.string().nullable(),
  created_at: z.string(),
  /** True if subscribers have received parts of an earlier attempt. */
  shown: z.boolean(),
})

/**
 * Records that a request to the provider is about to be sent, so that a request with an unknown outcome leaves a trace.
 * No row if the transcription is gone or done.
 */
export const beginTranscription = (id: string, jobId: string): Query<z.output<typeof StartedTranscription>> =>
  sql.prepared('voice_transcription_begin', StartedTranscription)`
    update voice_transcription t set calls = case when t.job_id = ${jobId}::uuid then t.calls + 1 else 1 end,
      job_id = ${jobId}::uuid, status = 'pending', settled_at = null, error_code = null, error_detail = null
    where t.id = ${id}::uuid and t.status <> 'done'
    returning t.requested_language, t.prompt, iso(t.created_at) as created_at,
      exists (select from job_event e where e.job_id = ${jobId}::uuid and e.kind = 'chunk' and e.seq > coalesce((
        select max(r.seq) from job_event r where r.job_id = ${jobId}::uuid and r.kind = 'restart'), 0)) as shown`

const Segment = z.object({
  start: z.number(),
  end: z.number(),
  text: z.string(),
  speaker: z.string().nullable(),
  no_speech_prob: z.number().nullable(),
  avg_logprob: z.number().nullable(),
  compression_ratio: z.number().nullable(),
})

/** A piece of a recording with the provider's answer. Times of segments start with the piece. */
const AnsweredPiece = z.object({
  start: z.number(),
  end: z.number(),
  part: z.object({
    text: z.string(),
    language: z.string().nullable(),
    duration_seconds: z.number().nullable(),
    segments: z.array(Segment),
    usage: z.object({
      input_tokens: z.number().nullable(),
      output_tokens: z.number().nullable(),
      audio_seconds: z.number().nullable(),
    }),
    cost: z.string().nullable(),
  }),
})

/** Returns the answered pieces of a transcription, in order. */
export const listTranscriptionPieces = (id: string): Query<z.output<typeof AnsweredPiece>> =>
  sql.type(AnsweredPiece)`
    select starts as start, ends as "end", answer as part from voice_transcription_piece
    where transcription_id = ${id}::uuid order by ordinal`

interface NewPiece {
  readonly start: number
  readonly end: number | null
  readonly part: object
}

export const addTranscriptionPiece = (id: string, ordinal: number, piece: NewPiece): Query<unknown> =>
  sql.type(noRows)`
    insert into voice_transcription_piece (transcription_id, ordinal, starts, ends, answer)
    values (${id}::uuid, ${ordinal}, ${piece.start}, ${piece.end}, ${JSON.stringify(piece.part)}::jsonb)`

/**
 * Caller of a read. Without `seesAll`, it reads only the transcriptions of `owner`; null means those without an owner.
 */
type Viewer = [owner: number | null, seesAll: boolean]

const VISIBLE_CONDITION = '($3::boolean or t.owner_id is not distinct from $2::int)'

export const readTranscription: ReadStatement<[id: string, ...viewer: Viewer]> = {
  name: 'voice_transcription',
  text: `select concat(left(voice_transcription_json(t)::text, -1), ',"text":', coalesce(to_json(t.text)::text, 'null'),
    ',"segments":', t.segments, '}') from voice_transcription t where t.id = $1::uuid and ${VISIBLE_CONDITION}`,
}

export const TRANSCRIPTION_ORDER = { 't.created_at': 'timestamptz', 't.id': 'uuid' } as const

/** A page of transcriptions without their text, newest first. */
export const readTranscriptions: ReadStatement<[...viewer: Viewer, ...page: PageValues]> = {
  name: 'voice_transcriptions',
  text: buildArrayText({
    table: 'voice_transcription',
    row: 't',
    parameters: 2,
    // Each condition uses its own index, in list order.
    where: ['not $2::boolean and t.owner_id = $1::int', '$2::boolean'],
    order: TRANSCRIPTION_ORDER,
    direction: 'desc',
    hasPageNumbers: false,
    item: 'voice_transcription_json(t)',
  }),
}

/** Cancels the job of a pending transcription; no row if there is nothing to cancel. */
export const cancelTranscription = (
  id: string,
  owner: number | null,
  seesAll: boolean,
): Query<{ job_id: string }> =>
  sql.type(z.object({ job_id: z.string() }))`
    select job_cancel(array(
      select job_id from voice_transcription
      where id = ${id}::uuid and status = 'pending' and (${seesAll}::boolean or owner_id is not distinct from ${owner}::int))) as job_id`

/** Deletes a transcription; no row if the viewer cannot see it. */
export const deleteTranscription = (
  id: string,
  owner: number | null,
  seesAll: boolean,
): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`
    delete from voice_transcription
    where id = ${id}::uuid and (${seesAll}::boolean or owner_id is not distinct from ${owner}::int)
    returning id`
