-- Voice: the settings of speech synthesis and recognition, synthesized speech, and transcriptions.

-- The stored settings. The table has at most one row.
create table voice_settings (
  id boolean not null default true,
  tts_provider text not null,
  tts_model text not null,
  tts_voice text not null,
  tts_speed numeric not null,
  stt_provider text not null,
  stt_model text not null,
  -- Null if the provider detects the language.
  stt_language text,
  updated_by integer,
  updated_at timestamptz not null default now(),
  constraint voice_settings_pkey primary key (id),
  constraint voice_settings_id_check check (id),
  constraint voice_settings_tts_speed_check check (tts_speed between 0.25 and 4),
  constraint voice_settings_stt_language_check check (stt_language ~ '^[a-z]{2,3}(-[A-Za-z0-9]{1,8})*$'),
  constraint voice_settings_updated_by_fkey foreign key (updated_by) references account (id) on delete set null
);
create index voice_settings_updated_by_idx on voice_settings (updated_by);

-- Previews and whole speeches: their text and voice, and the MP3 in chunks that clients can read while later ones still
-- arrive. A long text is synthesized in pieces. A provider never returns the same bytes twice. Each attempt therefore has
-- its own generation, and only one generation is stored at a time. It begins with the complete pieces of earlier attempts.
create table voice_preview (
  -- The digest of provider, model, voice, speed and text; for a speech, also of its owner and language.
  digest bytea not null,
  -- The owner of a speech; null for a preview, which all accounts share.
  owner_id integer,
  -- The latest job of a speech, by which clients name it; null for a preview.
  job_id uuid,
  -- Number of requests to the provider that this job has started, whatever their outcome.
  calls integer not null default 0,
  provider text not null,
  model text not null,
  voice text not null,
  speed numeric not null,
  text text not null,
  characters integer not null generated always as (length(text)) stored,
  -- The language by whose rules the text is cut; null if it is unknown.
  language text,
  -- Number of pieces of the text whose MP3 is complete.
  spoken integer not null default 0,
  -- The latest attempt; null before the first one.
  generation uuid,
  -- Size of the complete MP3; null until all bytes are stored.
  byte_size integer,
  used_at timestamptz not null default now(),
  constraint voice_preview_pkey primary key (digest),
  constraint voice_preview_job_id_key unique (job_id),
  constraint voice_preview_owner_id_fkey foreign key (owner_id) references account (id) on delete cascade,
  constraint voice_preview_owner_id_check check (owner_id is null or job_id is not null),
  constraint voice_preview_counts_check check (least(spoken, calls) >= 0),
  constraint voice_preview_digest_check check (length(digest) = 32),
  constraint voice_preview_byte_size_check check (byte_size is null or (byte_size > 0 and generation is not null))
);
create index voice_preview_used_at_idx on voice_preview (used_at);
create index voice_preview_owner_id_idx on voice_preview (owner_id, job_id) include (characters) where owner_id is not null;

create table voice_preview_chunk (
  digest bytea not null,
  generation uuid not null,
  ordinal integer not null,
  -- Index of the piece of the text.
  piece integer not null default 0,
  -- Byte offset of the chunk within the MP3.
  start integer not null,
  bytes bytea not null,
  constraint voice_preview_chunk_pkey primary key (digest, generation, ordinal),
  constraint voice_preview_chunk_digest_fkey foreign key (digest) references voice_preview (digest) on delete cascade
);

-- Store the bytes uncompressed, because MP3 does not compress any further.
alter table voice_preview_chunk alter column bytes set storage external;

-- Transcriptions of recordings. A transcription is a `voice.transcribe` job of its document's actor. The row is stored
-- in the same transaction as the job. The transaction that ends the job also settles the row, whatever the outcome.
create table voice_transcription (
  id uuid not null,
  owner_id integer,
  -- The recording. No foreign key, because the text outlives the document.
  document_id bigint not null,
  -- The job that creates the transcription. After a retry, it is the latest job.
  job_id uuid not null,
  status text not null default 'pending',
  provider text not null,
  model text not null,
  -- The language that the caller specified; null if the provider detects it.
  requested_language text,
  -- Hints for the model about the recording.
  prompt text,
  -- Number of requests to the provider that the job has started, whatever their outcome.
  calls integer not null default 0,
  text text,
  -- The detected or requested language.
  language text,
  duration_seconds numeric,
  -- [{start, end, text, speaker, no_speech_prob, avg_logprob, compression_ratio}], with times in seconds.
  segments jsonb not null default '[]',
  -- Usage that the provider reported for the successful request: {input_tokens, output_tokens, audio_seconds}.
  usage jsonb,
  -- Cost of the successful request in US dollars; null if the price is unknown.
  cost numeric,
  error_code text,
  error_detail text,
  created_at timestamptz not null default now(),
  settled_at timestamptz,
  constraint voice_transcription_pkey primary key (id),
  constraint voice_transcription_owner_id_fkey foreign key (owner_id) references account (id) on delete cascade,
  constraint voice_transcription_status_check check (status in ('pending', 'done', 'failed', 'cancelled')),
  constraint voice_transcription_settled_check check ((status = 'pending') = (settled_at is null)),
  constraint voice_transcription_text_check check ((status = 'done') = (text is not null)),
  constraint voice_transcription_error_check check ((status = 'failed') = (error_code is not null)),
  constraint voice_transcription_requested_language_check check (requested_language ~ '^[a-z]{2,3}(-[A-Za-z0-9]{1,8})*$'),
  constraint voice_transcription_prompt_check check (length(prompt) between 1 and 4000),
  constraint voice_transcription_amounts_check check (least(duration_seconds, cost) >= 0 and calls >= 0),
  constraint voice_transcription_segments_check check (jsonb_typeof(segments) = 'array')
);
create index voice_transcription_owner_id_idx on voice_transcription (owner_id, created_at desc, id desc);
create index voice_transcription_created_at_idx on voice_transcription (created_at desc, id desc);

-- Answers for pieces of a recording that is too large for a provider, until its transcription is done. A retry continues
-- after them.
create table voice_transcription_piece (
  transcription_id uuid not null,
  ordinal integer not null,
  -- Place in the recording, in seconds. The next piece starts at `ends`.
  starts double precision not null,
  ends double precision not null,
  -- {text, language, duration_seconds, segments, usage, cost}. Times of segments start with the piece.
  answer jsonb not null,
  constraint voice_transcription_piece_pkey primary key (transcription_id, ordinal),
  constraint voice_transcription_piece_transcription_id_fkey foreign key (transcription_id)
    references voice_transcription (id) on delete cascade,
  constraint voice_transcription_piece_times_check check (starts >= 0 and ends > starts)
);
