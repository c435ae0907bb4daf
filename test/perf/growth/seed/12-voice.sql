-- 200,000 transcriptions of a few seconds. A tenth belong to the big owner.

insert into voice_transcription (id, owner_id, document_id, job_id, status, provider, model, text, segments, duration_seconds, usage,
  cost, created_at, settled_at)
select growth.id(at), growth.owner(n, size, 10, growth.size(10000)), n, gen_random_uuid(), 'done', 'openai', 'whisper-1',
  (select string_agg(growth.word(1 + growth.pick(n, k, 3000)), ' ') from generate_series(1, 20) k),
  (select jsonb_agg(jsonb_build_object('start', k * 5, 'end', k * 5 + 5, 'speaker', null,
    'text', growth.word(1 + growth.pick(n, k, 3000)))) from generate_series(0, 1) k),
  10, '{"input_tokens": null, "output_tokens": null, "audio_seconds": 10}', 0.001, at, at + interval '20 seconds'
from growth.size(200000) size, generate_series(1, size) n, growth.moment(n, size, '1 year') at order by n;

-- 200,000 speeches of a sentence, each with one chunk. A tenth belong to the big owner.
insert into voice_preview (digest, owner_id, job_id, provider, model, voice, speed, text, spoken, generation, byte_size)
select sha256(n::text::bytea), growth.owner(n, size, 10, growth.size(10000)), growth.id(at), 'openai', 'tts-1', 'alloy', 1,
  'It was a good year.', 1, growth.id(at), 400
from growth.size(200000) size, generate_series(1, size) n, growth.moment(n, size, '1 year') at order by n;

insert into voice_preview_chunk (digest, generation, ordinal, start, bytes)
select digest, generation, 0, 0, decode(repeat('ab', 400), 'hex') from voice_preview;
