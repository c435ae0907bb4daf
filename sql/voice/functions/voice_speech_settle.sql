-- Settles a speech when its job ends. The task `voice.speech` declares this function.
create or replace function voice_speech_settle(ended job) returns void language plpgsql as $$
begin
  -- A job that found the speech complete has begun no request.
  perform voice_usage_settle(ended, 'speech', coalesce(
    (select calls from voice_preview where job_id = ended.id), 0));
end $$;
