import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'

/** Voice settings and previews. `voice/tables.sql` has their tables. */

const VoiceSettings = z.object({
  tts_provider: z.string(),
  tts_model: z.string(),
  tts_voice: z.string(),
  tts_speed: z.number(),
  stt_provider: z.string(),
  stt_model: z.string(),
  /** Null if the provider detects the language. */
  stt_language: z.string().nullable(),
})
export type VoiceSettings = z.output<typeof VoiceSettings>

/** Returns the stored settings; no row if none are stored. */
export const findVoiceSettings = (): Query<VoiceSettings> =>
  sql.type(VoiceSettings)`
    select tts_provider, tts_model, tts_voice, tts_speed, stt_provider, stt_model, stt_language from voice_settings`

/** Serializes changes to the settings by a lock that ends with the transaction. */
export const lockVoiceSettings = (): Query<unknown> =>
  sql.type(noRows)`select pg_advisory_xact_lock(hashtextextended('millrace.voice_settings', 0))`

export const storeVoiceSettings = (s: VoiceSettings, by: number | null): Query<unknown> =>
  sql.type(noRows)`
    insert into voice_settings (tts_provider, tts_model, tts_voice, tts_speed, stt_provider, stt_model, stt_language, updated_by)
    values (${s.tts_provider}, ${s.tts_model}, ${s.tts_voice}, ${s.tts_speed}, ${s.stt_provider}, ${s.stt_model},
      ${s.stt_language}, ${by})
    on conflict (id) do update set tts_provider = excluded.tts_provider, tts_model = excluded.tts_model,
      tts_voice = excluded.tts_voice, tts_speed = excluded.tts_speed, stt_provider = excluded.stt_provider,
      stt_model = excluded.stt_model, stt_language = excluded.stt_language, updated_by = excluded.updated_by,
      updated_at = now()`

/** Input of a speech synthesis. */
export interface Speech {
  readonly provider: string
  readonly model: string
  readonly voice: string
  readonly speed: number
  readonly text: string
}

const Preview = z.object({ generation: z.string(), byte_size: z.number() })
/** A preview whose bytes are all stored. */
export type Preview = z.output<typeof Preview>

// Condition that limits writes of `used_at` to one a day, since retention (`PREVIEWS_KEEP_DAYS`) counts days.
const USE_OUTDATED_CONDITION = sql.fragment`used_at < now() - interval '1 day'`

/**
 * Returns a preview whose bytes are all stored, and records its use. No row if the preview is missing or incomplete.
 */
export const findPreview = (digest: Buffer): Query<Preview> =>
  sql.prepared('voice_preview', Preview)`
    with used as (update voice_preview set used_at = now() where digest = ${sql.binary(digest)} and ${USE_OUTDATED_CONDITION})
    select generation, byte_size from voice_preview where digest = ${sql.binary(digest)} and byte_size is not null`

/** Stores the input of a preview; if it is already stored, records its use. */
export const storePreviewRequest = (digest: Buffer, s: Speech): Query<unknown> =>
  sql.type(noRows)`
    insert into voice_preview (digest, provider, model, voice, speed, text)
    values (${sql.binary(digest)}, ${s.provider}, ${s.model}, ${s.voice}, ${s.speed}, ${s.text})
    on conflict (digest) do update set used_at = now()`

const RequestedPreview = z.object({
  provider: z.string(),
  model: z.string(),
  voice: z.string(),
  speed: z.number(),
  text: z.string(),
  language: z.string().nullable(),
  byte_size: z.number().nullable(),
})

export const findRequestedPreview = (digest: Buffer): Query<z.output<typeof RequestedPreview>> =>
  sql.type(RequestedPreview)`
    select provider, model, voice, speed, text, language, byte_size from voice_preview where digest = ${sql.binary(digest)}`

const BegunPreview = z.object({
  generation: z.string(),
  /** Number of complete pieces, which the generation begins with. */
  spoken: z.number(),
  /** The next chunk and its byte offset. */
  ordinal: z.number(),
  start: z.number(),
})

/**
 * Begins a new generation of a preview with the complete pieces of earlier ones, and deletes their other chunks. No row
 * if the preview was deleted.
 */
export const beginPreview = (digest: Buffer): Query<z.output<typeof BegunPreview>> =>
  sql.type(BegunPreview)`
    with begun as (
      update voice_preview set generation = gen_random_uuid(), byte_size = null where digest = ${sql.binary(digest)}
      returning generation, spoken
    ), gone as (
      delete from voice_preview_chunk c using begun where c.digest = ${sql.binary(digest)} and c.piece >= begun.spoken
    ), kept as (
      update voice_preview_chunk c set generation = begun.generation from begun
      where c.digest = ${sql.binary(digest)} and c.piece < begun.spoken
      returning c.ordinal, c.start + length(c.bytes) as size
    )
    select begun.generation, begun.spoken, coalesce(max(kept.ordinal) + 1, 0) as ordinal, coalesce(max(kept.size), 0) as start
    from begun left join kept on true group by 1, 2`

/** Records that the first pieces of a generation are complete. */
export const completePiece = (digest: Buffer, generation: string, spoken: number): Query<unknown> =>
  sql.type(noRows)`
    update voice_preview set spoken = ${spoken}
    where digest = ${sql.binary(digest)} and generation = ${generation}::uuid`

interface NewChunk {
  readonly digest: Buffer
  readonly generation: string
  readonly ordinal: number
  /** Index of the piece of the text; default 0. */
  readonly piece?: number
  readonly start: number
  readonly bytes: Buffer
}

export const addPreviewChunk = (c: NewChunk): Query<unknown> =>
  sql.type(noRows)`
    insert into voice_preview_chunk (digest, generation, ordinal, piece, start, bytes)
    values (${sql.binary(c.digest)}, ${c.generation}::uuid, ${c.ordinal}, ${c.piece ?? 0}, ${c.start}, ${sql.binary(c.bytes)})`

export const completePreview = (digest: Buffer, generation: string, byteSize: number): Query<unknown> =>
  sql.type(noRows)`
    update voice_preview set byte_size = ${byteSize}
    where digest = ${sql.binary(digest)} and generation = ${generation}::uuid`

const Chunk = z.object({ start: z.number(), bytes: z.instanceof(Uint8Array) })

/** Returns the chunk of a generation that contains a byte position; no row if that chunk is not stored. */
export const findPreviewChunk = (
  digest: Buffer,
  generation: string,
  position: number,
): Query<z.output<typeof Chunk>> =>
  sql.prepared('voice_preview_chunk', Chunk)`
    select start, bytes from (
      select start, bytes from voice_preview_chunk
      where digest = ${sql.binary(digest)} and generation = ${generation}::uuid and start <= ${position}
      order by ordinal desc limit 1) last
    where start + length(bytes) > ${position}`

/** Prunes the least recently used previews, so that `max` remain; returns their number. Keeps speeches, which have a quota. */
export const deleteExcessPreviews = (max: number, batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with excess as (
      delete from voice_preview where digest in (
        select digest from voice_preview where job_id is null order by used_at desc offset ${max} limit ${batch})
      returning 1
    )
    select count(*)::int as count from excess`
