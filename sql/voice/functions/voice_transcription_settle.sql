-- Settles a transcription when its job ends. The task `voice.transcribe` declares this function. Each request that an
-- attempt completed reports its usage in an event. A killed attempt may lack the event of a request that was charged,
-- so this request counts with unknown cost.
create or replace function voice_transcription_settle(ended job) returns void language plpgsql as $$
declare
  transcription uuid := (ended.payload ->> 'transcription_id')::uuid;
  begun integer := (select calls from voice_transcription where id = transcription and job_id = ended.id);
  reported integer;
begin
  delete from ai_budget_hold where job_id = ended.id;
  with used as (
    insert into ai_usage (user_id, owner_id, key_id, action, vendor, model, input_tokens, output_tokens, audio_seconds, cost, estimated, success)
    select coalesce(ended.owner_id::text, 'api-user'), ended.owner_id, (ended.payload ->> 'key_id')::uuid, 'transcription', ended.payload ->> 'provider',
      ended.payload ->> 'model', (e.data ->> 'input_tokens')::bigint, (e.data ->> 'output_tokens')::bigint,
      (e.data ->> 'audio_seconds')::numeric, (e.data ->> 'cost')::numeric, (e.data ->> 'estimated')::boolean,
      (e.data ->> 'success')::boolean
    from job_event e where e.job_id = ended.id and e.kind = 'usage' order by e.seq
    returning 1
  )
  select count(*) into reported from used;
  -- The row is gone if the transcription was deleted while its job ran.
  insert into ai_usage (user_id, owner_id, key_id, action, vendor, model, input_tokens, output_tokens, estimated, success)
  select coalesce(ended.owner_id::text, 'api-user'), ended.owner_id, (ended.payload ->> 'key_id')::uuid, 'transcription', ended.payload ->> 'provider',
    ended.payload ->> 'model', 0, 0, true, false
  from generate_series(reported + 1, coalesce(begun, least(ended.attempt, 1)));

  update voice_transcription t set status = ended.status, job_id = ended.id,
    settled_at = coalesce((ended.result ->> 'completed_at')::timestamptz, now()),
    text = ended.result ->> 'text', language = ended.result ->> 'language',
    duration_seconds = (ended.result ->> 'duration_seconds')::numeric,
    segments = coalesce(ended.result -> 'segments', '[]'), usage = nullif(ended.result -> 'usage', 'null'),
    cost = (ended.result ->> 'cost')::numeric, error_code = ended.error_code, error_detail = ended.error_detail
  where t.id = transcription and t.status <> 'done';
  if ended.status = 'done' then
    delete from voice_transcription_piece where transcription_id = transcription;
  end if;
end $$;
