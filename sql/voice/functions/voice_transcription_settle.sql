-- Settles a transcription when its job ends. The task `voice.transcribe` declares this function.
create or replace function voice_transcription_settle(ended job) returns void language plpgsql as $$
declare
  transcription uuid := (ended.payload ->> 'transcription_id')::uuid;
begin
  perform voice_usage_settle(ended, 'transcription',
    (select calls from voice_transcription where id = transcription and job_id = ended.id));

  -- The row is gone if the transcription was deleted while its job ran.
  update voice_transcription t set status = ended.status, job_id = ended.id,
    settled_at = coalesce((ended.result ->> 'finished_at')::timestamptz, now()),
    text = ended.result ->> 'text', language = ended.result ->> 'language',
    duration_seconds = (ended.result ->> 'duration_seconds')::numeric,
    segments = coalesce(ended.result -> 'segments', '[]'), usage = nullif(ended.result -> 'usage', 'null'),
    cost = (ended.result ->> 'cost')::numeric, error_code = ended.error_code, error_detail = ended.error_detail
  where t.id = transcription and t.status <> 'done';
  if ended.status = 'done' then
    delete from voice_transcription_piece where transcription_id = transcription;
  end if;
end $$;
