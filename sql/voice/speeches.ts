import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import type { Speech } from './previews.ts'

/** Whole speeches: previews with an owner and a job. `voice/tables.sql` has their table. */

/** A speech to add. */
export interface NewSpeech extends Speech {
  readonly digest: Buffer
  readonly ownerId: number | null
  readonly jobId: string
  readonly language: string | null
}

/** Stores the input of a speech. If it is already stored, records its use and its latest job, which has no calls yet. */
export const storeSpeech = (s: NewSpeech): Query<unknown> =>
  sql.type(noRows)`
    insert into voice_preview (digest, owner_id, job_id, provider, model, voice, speed, text, language)
    values (${sql.binary(s.digest)}, ${s.ownerId}, ${s.jobId}::uuid, ${s.provider}, ${s.model}, ${s.voice}, ${s.speed}, ${s.text},
      ${s.language})
    on conflict (digest) do update set used_at = now(), job_id = excluded.job_id,
      calls = case when voice_preview.job_id is not distinct from excluded.job_id then voice_preview.calls else 0 end`

const StoredSpeech = z.object({
  digest: z.instanceof(Uint8Array),
  job_id: z.string(),
  generation: z.string().nullable(),
  /** Null until all bytes are stored. */
  byte_size: z.number().nullable(),
})
export type StoredSpeech = z.output<typeof StoredSpeech>

/**
 * Returns a speech that the viewer can see, by its job, and records its use. An incomplete speech exists while its job is
 * kept, which says why it is incomplete.
 */
export const findSpeech = (jobId: string, owner: number | null, seesAll: boolean): Query<StoredSpeech> =>
  sql.prepared('voice_speech', StoredSpeech)`
    with used as (
      update voice_preview set used_at = now() where job_id = ${jobId}::uuid and used_at < now() - interval '1 day')
    select digest, job_id, generation, byte_size from voice_preview
    where job_id = ${jobId}::uuid and (${seesAll}::boolean or owner_id is not distinct from ${owner}::int)
      and (byte_size is not null or exists (select from job where id = ${jobId}::uuid))`

/** Returns a speech by its digest, and records its use. */
export const findSpeechByDigest = (digest: Buffer): Query<StoredSpeech> =>
  sql.prepared('voice_speech_by_digest', StoredSpeech)`
    with used as (
      update voice_preview set used_at = now()
      where digest = ${sql.binary(digest)} and used_at < now() - interval '1 day')
    select digest, job_id, generation, byte_size from voice_preview where digest = ${sql.binary(digest)}`

/**
 * Records that a request to the provider is about to be sent, so that a request with an unknown outcome leaves a trace.
 * No row if the speech was deleted.
 */
export const beginSpeechCall = (digest: Buffer, jobId: string): Query<{ calls: number }> =>
  sql.type(z.object({ calls: z.number() }))`
    update voice_preview set calls = case when job_id = ${jobId}::uuid then calls + 1 else 1 end, job_id = ${jobId}::uuid
    where digest = ${sql.binary(digest)}
    returning calls`

/** Cancels the job of an incomplete speech; no row if there is nothing to cancel. */
export const cancelSpeech = (
  jobId: string,
  owner: number | null,
  seesAll: boolean,
): Query<{ job_id: string }> =>
  sql.type(z.object({ job_id: z.string() }))`
    select job_cancel(array(
      select job_id from voice_preview
      where job_id = ${jobId}::uuid and byte_size is null and (${seesAll}::boolean or owner_id is not distinct from ${owner}::int))) as job_id`

/** Deletes a speech; no row if the viewer cannot see it. */
export const deleteSpeech = (
  jobId: string,
  owner: number | null,
  seesAll: boolean,
): Query<{ job_id: string }> =>
  sql.type(z.object({ job_id: z.string() }))`
    delete from voice_preview
    where job_id = ${jobId}::uuid and (${seesAll}::boolean or owner_id is not distinct from ${owner}::int)
    returning job_id`
