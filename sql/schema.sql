create extension btree_gin;

create extension pg_trgm;

create extension unaccent;

create table account (
  id integer not null generated always as identity,
  email text,
  password_hash text not null,
  full_name text,
  role text not null default 'user'::text,
  is_active boolean not null default true,
  is_verified boolean not null default false,
  last_login timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone,
  deletion_at timestamp with time zone,
  deleted_at timestamp with time zone,
  words text generated always as (folded((email || COALESCE(('
'::text || full_name), ''::text)))),
  constraint account_pkey PRIMARY KEY (id),
  constraint account_email_key UNIQUE (email),
  constraint account_deleted_check CHECK (
CASE
    WHEN (deleted_at IS NULL) THEN (email IS NOT NULL)
    ELSE ((email IS NULL) AND (full_name IS NULL) AND (password_hash = ''::text) AND (NOT is_active) AND (deletion_at IS NULL))
END),
  constraint account_email_check CHECK (((email = lower(email)) AND ((length(email) >= 3) AND (length(email) <= 254)))),
  constraint account_full_name_check CHECK ((length(full_name) <= 200)),
  constraint account_role_check CHECK ((role = ANY (ARRAY['user'::text, 'moderator'::text, 'admin'::text])))
);

create table account_export (
  id uuid not null,
  account_id integer not null,
  sha256 bytea not null,
  byte_size bigint not null,
  created_at timestamp with time zone not null default now(),
  constraint account_export_pkey PRIMARY KEY (id),
  constraint account_export_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint account_export_byte_size_check CHECK ((byte_size > 0)),
  constraint account_export_sha256_check CHECK ((length(sha256) = 32))
);

create table account_quota (
  account_id integer not null,
  kind text not null,
  quota bigint not null,
  constraint account_quota_pkey PRIMARY KEY (account_id, kind),
  constraint account_quota_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint account_quota_kind_check CHECK ((kind = ANY (ARRAY['documents'::text, 'bytes'::text, 'pages'::text, 'organizations'::text, 'keys'::text, 'webhook_endpoints'::text, 'pending_deliveries'::text, 'conversations'::text, 'collections'::text, 'speech_characters'::text, 'schedules'::text, 'worker_queues'::text, 'waiting_jobs'::text]))),
  constraint account_quota_quota_check CHECK (((quota >= 0) AND (quota <= '9007199254740991'::bigint)))
);

create table account_token (
  id uuid not null,
  account_id integer not null,
  kind text not null,
  digest bytea not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone,
  constraint account_token_pkey PRIMARY KEY (id),
  constraint account_token_digest_key UNIQUE (digest),
  constraint account_token_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint account_token_digest_check CHECK ((length(digest) = 32)),
  constraint account_token_kind_check CHECK ((kind = ANY (ARRAY['reset'::text, 'verify'::text, 'sign_in'::text])))
);

create table account_totp (
  id uuid not null,
  account_id integer not null,
  secret text not null,
  created_at timestamp with time zone not null default now(),
  confirmed_at timestamp with time zone,
  last_step bigint not null default 0,
  recovery_codes bytea[] not null default '{}'::bytea[],
  constraint account_totp_pkey PRIMARY KEY (id),
  constraint account_totp_account_id_key UNIQUE (account_id),
  constraint account_totp_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint account_totp_last_step_check CHECK ((last_step >= 0)),
  constraint account_totp_recovery_codes_check CHECK ((cardinality(recovery_codes) <= 10)),
  constraint account_totp_secret_check CHECK ((secret ~ '^[\w-]{8}\.[\w-]+$'::text))
);

create table ai_agent (
  slug text not null,
  name text not null,
  description text not null default ''::text,
  category text not null default 'general'::text,
  model_id text,
  fallback_model_id text,
  temperature double precision,
  max_tokens integer,
  system_prompt text not null,
  is_active boolean not null default true,
  tools jsonb not null default '[]'::jsonb,
  memory_modules jsonb not null default '[]'::jsonb,
  knowledge_base_ids jsonb not null default '[]'::jsonb,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint ai_agent_pkey PRIMARY KEY (slug),
  constraint ai_agent_max_tokens_check CHECK (((max_tokens >= 1) AND (max_tokens <= 1000000))),
  constraint ai_agent_slug_check CHECK (((slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$'::text) AND (length(slug) <= 63))),
  constraint ai_agent_system_prompt_check CHECK ((system_prompt ~ '\S'::text)),
  constraint ai_agent_temperature_check CHECK (((temperature >= (0)::double precision) AND (temperature <= (2)::double precision)))
);

create table ai_budget (
  account_id integer,
  key_id uuid,
  kind text not null,
  amount numeric not null,
  constraint ai_budget_account_id_key UNIQUE (account_id, kind),
  constraint ai_budget_key_id_key UNIQUE (key_id, kind),
  constraint ai_budget_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint ai_budget_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_key(id) ON DELETE CASCADE,
  constraint ai_budget_amount_check CHECK ((((amount >= (0)::numeric) AND (amount <= ('9007199254740991'::bigint)::numeric)) AND ((account_id IS NOT NULL) OR (amount > (0)::numeric)))),
  constraint ai_budget_holder_check CHECK ((num_nonnulls(account_id, key_id) = 1)),
  constraint ai_budget_kind_check CHECK ((kind = ANY (ARRAY['day_tokens'::text, 'day_cost'::text, 'month_tokens'::text, 'month_cost'::text])))
);

create table ai_budget_hold (
  job_id uuid not null,
  account_id integer,
  key_id uuid,
  tokens bigint not null,
  cost numeric not null,
  constraint ai_budget_hold_pkey PRIMARY KEY (job_id),
  constraint ai_budget_hold_job_id_fkey FOREIGN KEY (job_id) REFERENCES job(id) ON DELETE CASCADE,
  constraint ai_budget_hold_amounts_check CHECK (((tokens >= 0) AND (cost >= (0)::numeric)))
) with (autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table ai_conversation (
  id uuid not null,
  user_id text not null,
  owner_id integer,
  title text not null,
  provider text not null,
  model text not null,
  last_response_ms double precision,
  message_count integer not null default 0,
  unscored_since timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint ai_conversation_pkey PRIMARY KEY (id),
  constraint ai_conversation_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint ai_conversation_title_check CHECK (((length(title) >= 1) AND (length(title) <= 200))),
  constraint ai_conversation_user_id_check CHECK (((length(user_id) >= 1) AND (length(user_id) <= 255)))
);

create table ai_conversation_count (
  id bigint not null generated always as identity,
  day date not null,
  conversations bigint not null,
  constraint ai_conversation_count_pkey PRIMARY KEY (id)
) with (fillfactor=50, autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table ai_key_sum (
  id bigint not null generated always as identity,
  key_id uuid not null,
  day date not null,
  tokens bigint not null,
  cost numeric not null,
  unpriced bigint not null,
  constraint ai_key_sum_pkey PRIMARY KEY (id)
) with (autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table ai_message (
  id uuid not null,
  ordinal bigint not null generated always as identity,
  conversation_id uuid not null,
  parent_id uuid,
  is_active boolean not null default true,
  role text not null,
  status text not null,
  content text not null,
  document_ids bigint[] not null default '{}'::bigint[],
  tool_calls jsonb,
  tool_results jsonb,
  job_id uuid,
  provider text,
  model text,
  response_ms double precision,
  finish_reason text,
  reasoning text,
  rag_sources jsonb,
  error_detail text,
  created_at timestamp with time zone not null default now(),
  settled_at timestamp with time zone,
  is_visible boolean not null generated always as ((is_active AND (status <> 'pending'::text) AND ((content <> ''::text) OR (tool_calls IS NOT NULL) OR (tool_results IS NOT NULL)))),
  constraint ai_message_pkey PRIMARY KEY (id),
  constraint ai_message_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES ai_conversation(id) ON DELETE CASCADE,
  constraint ai_message_job_check CHECK (((status <> 'pending'::text) OR (job_id IS NOT NULL))),
  constraint ai_message_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'tool'::text]))),
  constraint ai_message_settled_check CHECK (((status = 'pending'::text) = (settled_at IS NULL))),
  constraint ai_message_status_check CHECK ((status = ANY (ARRAY['complete'::text, 'pending'::text, 'failed'::text, 'stopped'::text]))),
  constraint ai_message_tools_check CHECK ((((role = 'tool'::text) = (tool_results IS NOT NULL)) AND ((role = 'assistant'::text) OR (tool_calls IS NULL)))),
  constraint ai_message_user_check CHECK (((role = 'assistant'::text) OR ((status = 'complete'::text) AND (job_id IS NULL))))
);

create table ai_sentiment (
  conversation_id uuid not null,
  owner_id integer,
  sentiment text not null,
  performance text not null,
  score double precision not null,
  scored_at timestamp with time zone not null default now(),
  constraint ai_sentiment_pkey PRIMARY KEY (conversation_id),
  constraint ai_sentiment_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES ai_conversation(id) ON DELETE CASCADE,
  constraint ai_sentiment_performance_check CHECK ((performance = ANY (ARRAY['good'::text, 'acceptable'::text, 'poor'::text]))),
  constraint ai_sentiment_score_check CHECK (((score >= ('-1'::integer)::double precision) AND (score <= (1)::double precision))),
  constraint ai_sentiment_sentiment_check CHECK ((sentiment = ANY (ARRAY['positive'::text, 'neutral'::text, 'negative'::text, 'frustrated'::text])))
);

create table ai_sentiment_sum (
  id bigint not null generated always as identity,
  owner_id integer not null,
  sentiment text not null,
  performance text not null,
  scores bigint not null,
  score numeric not null,
  constraint ai_sentiment_sum_pkey PRIMARY KEY (id)
) with (fillfactor=50, autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table ai_text (
  text_id uuid not null,
  part integer not null,
  conversation_id uuid not null,
  space integer not null,
  search tsvector not null,
  constraint ai_text_pkey PRIMARY KEY (text_id, part),
  constraint ai_text_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES ai_conversation(id) ON DELETE CASCADE
) with (autovacuum_vacuum_insert_scale_factor=0.02);

create table ai_usage (
  id bigint not null generated always as identity,
  user_id text not null,
  owner_id integer,
  key_id uuid,
  conversation_id uuid,
  message_id uuid,
  action text not null,
  vendor text not null,
  model text not null,
  input_tokens bigint not null,
  cached_tokens bigint not null default 0,
  output_tokens bigint not null,
  reasoning_tokens bigint not null default 0,
  audio_seconds numeric not null default 0,
  cost numeric,
  estimated boolean not null,
  success boolean not null,
  created_at timestamp with time zone not null default now(),
  constraint ai_usage_pkey PRIMARY KEY (id),
  constraint ai_usage_message_id_key UNIQUE (message_id),
  constraint ai_usage_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES account(id) ON DELETE SET NULL,
  constraint ai_usage_cost_check CHECK ((cost >= (0)::numeric)),
  constraint ai_usage_tokens_check CHECK (((input_tokens >= 0) AND (output_tokens >= 0) AND (cached_tokens >= 0) AND (reasoning_tokens >= 0) AND (audio_seconds >= (0)::numeric))),
  constraint ai_usage_user_id_check CHECK (((length(user_id) >= 1) AND (length(user_id) <= 255)))
);

create table ai_usage_sum (
  id bigint not null generated always as identity,
  user_id text not null,
  owner_id integer not null,
  day date not null,
  vendor text not null,
  model text not null,
  requests bigint not null,
  successes bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  audio_seconds numeric not null default 0,
  unpriced bigint not null,
  estimated bigint not null,
  cost numeric not null,
  constraint ai_usage_sum_pkey PRIMARY KEY (id)
) with (autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table api_key (
  id uuid not null,
  account_id integer not null,
  organization_id integer,
  name text not null,
  digest bytea not null,
  hint text not null,
  scopes text[] not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  last_used_at timestamp with time zone,
  constraint api_key_pkey PRIMARY KEY (id),
  constraint api_key_digest_key UNIQUE (digest),
  constraint api_key_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint api_key_organization_id_account_id_fkey FOREIGN KEY (organization_id, account_id) REFERENCES organization_member(organization_id, user_id) ON DELETE CASCADE,
  constraint api_key_digest_check CHECK ((length(digest) = 32)),
  constraint api_key_hint_check CHECK ((length(hint) = 4)),
  constraint api_key_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint api_key_scopes_check CHECK ((array_to_string(scopes, ','::text, ''::text) ~ '^(\*|[a-z-]+):(read|write|work)(,(\*|[a-z-]+):(read|write|work)){0,49}$'::text))
);

create table api_key_allowance (
  key_id uuid not null,
  began_at timestamp with time zone not null,
  taken integer not null,
  granted integer not null,
  constraint api_key_allowance_pkey PRIMARY KEY (key_id),
  constraint api_key_allowance_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_key(id) ON DELETE CASCADE,
  constraint api_key_allowance_taken_check CHECK (((granted >= 0) AND (taken >= granted)))
) with (autovacuum_vacuum_scale_factor=0.02);

create table audit_event (
  id bigint not null generated always as identity,
  at timestamp with time zone not null default now(),
  kind text not null,
  actor_id integer,
  account_id integer,
  organization_id integer,
  address text,
  request_id text,
  data jsonb not null default '{}'::jsonb,
  constraint audit_event_pkey PRIMARY KEY (at, id),
  constraint audit_event_kind_check CHECK ((kind ~ '^[a-z_]+\.[a-z_]+$'::text))
) partition by RANGE (at);

create table blob (
  id bigint not null generated always as identity,
  sha256 bytea,
  byte_size bigint not null default 0,
  store text not null default 'postgres'::text,
  key uuid not null default gen_random_uuid(),
  upload_id text,
  deleted boolean not null default false,
  created_at timestamp with time zone not null default now(),
  constraint blob_pkey PRIMARY KEY (id),
  constraint blob_sha256_key UNIQUE (sha256),
  constraint blob_deleted_check CHECK (((NOT deleted) OR (sha256 IS NULL))),
  constraint blob_sha256_check CHECK ((length(sha256) = 32)),
  constraint blob_store_check CHECK (((store = 'postgres'::text) OR (store ~~ 'file:_%'::text) OR (store ~~ 's3://_%'::text)))
);

create table blob_chunk (
  blob_id bigint not null,
  ordinal integer not null,
  bytes bytea not null storage external,
  constraint blob_chunk_pkey PRIMARY KEY (blob_id, ordinal),
  constraint blob_chunk_blob_id_fkey FOREIGN KEY (blob_id) REFERENCES blob(id) ON DELETE CASCADE
);

create table blog_post (
  id bigint not null generated always as identity,
  title text not null,
  slug text not null,
  excerpt text,
  content text not null default ''::text,
  status text not null default 'draft'::text,
  author_id integer,
  author_name text,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  published_at timestamp with time zone,
  seo_title text,
  seo_description text,
  hero_image_url text,
  announced_at timestamp with time zone,
  fields text not null generated always as (blog_post_fields(id, title, slug, excerpt, content, status, author_id, author_name, created_at, updated_at, published_at, seo_title, seo_description, hero_image_url)),
  tags text not null default '[]'::text,
  constraint blog_post_pkey PRIMARY KEY (id),
  constraint blog_post_slug_key UNIQUE (slug),
  constraint blog_post_author_id_fkey FOREIGN KEY (author_id) REFERENCES account(id) ON DELETE SET NULL,
  constraint blog_post_author_name_check CHECK ((length(author_name) <= 320)),
  constraint blog_post_content_check CHECK ((length(content) <= 1000000)),
  constraint blog_post_excerpt_check CHECK ((length(excerpt) <= 500)),
  constraint blog_post_hero_image_url_check CHECK ((length(hero_image_url) <= 1024)),
  constraint blog_post_published_at_check CHECK (((status <> 'published'::text) OR (published_at IS NOT NULL))),
  constraint blog_post_seo_description_check CHECK ((length(seo_description) <= 320)),
  constraint blog_post_seo_title_check CHECK ((length(seo_title) <= 200)),
  constraint blog_post_slug_check CHECK (((slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$'::text) AND (length(slug) <= 220))),
  constraint blog_post_status_check CHECK ((status = ANY (ARRAY['draft'::text, 'published'::text, 'archived'::text]))),
  constraint blog_post_title_check CHECK (((length(title) >= 1) AND (length(title) <= 200)))
);

create table blog_post_count (
  id bigint not null generated always as identity,
  status text not null,
  posts bigint not null,
  constraint blog_post_count_pkey PRIMARY KEY (id)
) with (fillfactor=50, autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table blog_post_part (
  post_id bigint not null,
  part integer not null,
  search tsvector not null,
  constraint blog_post_part_pkey PRIMARY KEY (post_id, part),
  constraint blog_post_part_post_id_fkey FOREIGN KEY (post_id) REFERENCES blog_post(id) ON DELETE CASCADE
) with (autovacuum_vacuum_insert_scale_factor=0.02);

create table blog_post_tag (
  post_id bigint not null,
  tag_id bigint not null,
  status text not null,
  created_at timestamp with time zone not null,
  published_at timestamp with time zone,
  constraint blog_post_tag_pkey PRIMARY KEY (post_id, tag_id),
  constraint blog_post_tag_post_id_fkey FOREIGN KEY (post_id) REFERENCES blog_post(id) ON DELETE CASCADE,
  constraint blog_post_tag_tag_id_fkey FOREIGN KEY (tag_id) REFERENCES blog_tag(id) ON DELETE CASCADE
);

create table blog_preview (
  id bigint not null generated always as identity,
  post_id bigint not null,
  expires_at timestamp with time zone not null,
  constraint blog_preview_pkey PRIMARY KEY (id),
  constraint blog_preview_post_id_fkey FOREIGN KEY (post_id) REFERENCES blog_post(id) ON DELETE CASCADE
);

create table blog_redirect (
  slug text not null,
  post_id bigint not null,
  constraint blog_redirect_pkey PRIMARY KEY (slug),
  constraint blog_redirect_post_id_fkey FOREIGN KEY (post_id) REFERENCES blog_post(id) ON DELETE CASCADE
);

create table blog_revision (
  id bigint not null generated always as identity,
  post_id bigint not null,
  title text not null,
  slug text not null,
  excerpt text,
  content text not null,
  seo_title text,
  seo_description text,
  hero_image_url text,
  tags text not null,
  updated_at timestamp with time zone not null,
  replaced_at timestamp with time zone not null default now(),
  replaced_by text not null,
  editor_id integer,
  editor_name text,
  constraint blog_revision_pkey PRIMARY KEY (id),
  constraint blog_revision_editor_id_fkey FOREIGN KEY (editor_id) REFERENCES account(id) ON DELETE SET NULL,
  constraint blog_revision_post_id_fkey FOREIGN KEY (post_id) REFERENCES blog_post(id) ON DELETE CASCADE,
  constraint blog_revision_replaced_by_check CHECK ((replaced_by = ANY (ARRAY['update'::text, 'restore'::text, 'import'::text])))
);

create table blog_tag (
  id bigint not null generated always as identity,
  name text,
  slug text,
  created_at timestamp with time zone not null default now(),
  deleted_at timestamp with time zone,
  applied_to bigint,
  constraint blog_tag_pkey PRIMARY KEY (id),
  constraint blog_tag_name_key UNIQUE (name),
  constraint blog_tag_slug_key UNIQUE (slug),
  constraint blog_tag_deleted_check CHECK ((((deleted_at IS NULL) = (name IS NOT NULL)) AND ((name IS NULL) = (slug IS NULL)))),
  constraint blog_tag_name_check CHECK (((length(name) >= 1) AND (length(name) <= 80))),
  constraint blog_tag_slug_check CHECK (((slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$'::text) AND (length(slug) <= 100)))
);

create table blog_upload (
  id bigint not null generated always as identity,
  file_name text not null,
  format text not null,
  job_id uuid,
  result jsonb,
  created_at timestamp with time zone not null default now(),
  constraint blog_upload_pkey PRIMARY KEY (id),
  constraint blog_upload_format_check CHECK ((format = ANY (ARRAY['markdown'::text, 'zip'::text, 'json'::text, 'xml'::text])))
);

create table blog_upload_chunk (
  upload_id bigint not null,
  ordinal integer not null,
  bytes bytea not null storage external,
  constraint blog_upload_chunk_pkey PRIMARY KEY (upload_id, ordinal),
  constraint blog_upload_chunk_upload_id_fkey FOREIGN KEY (upload_id) REFERENCES blog_upload(id) ON DELETE CASCADE
);

create table comms_send (
  id uuid not null,
  channel text not null,
  purpose text not null default 'caller'::text,
  stream text not null default 'transactional'::text,
  owner_id integer,
  job_id uuid not null,
  recipients text[] not null,
  deliveries jsonb not null default '[]'::jsonb,
  message jsonb,
  status text not null default 'queued'::text,
  attachments jsonb not null default '[]'::jsonb,
  template text,
  send_at timestamp with time zone,
  requests integer not null default 0,
  next_attempt_at timestamp with time zone,
  attempt integer,
  provider_id text,
  provider_status text,
  error_code text,
  detail text,
  suppressed_by text[] not null default '{}'::text[],
  created_at timestamp with time zone not null default now(),
  requested_at timestamp with time zone,
  settled_at timestamp with time zone,
  constraint comms_send_pkey PRIMARY KEY (id),
  constraint comms_send_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES account(id) ON DELETE SET NULL,
  constraint comms_send_attachments_check CHECK (((jsonb_typeof(attachments) = 'array'::text) AND ((channel = 'email'::text) OR (attachments = '[]'::jsonb)))),
  constraint comms_send_channel_check CHECK ((channel = ANY (ARRAY['email'::text, 'sms'::text, 'call'::text]))),
  constraint comms_send_deliveries_check CHECK ((jsonb_typeof(deliveries) = 'array'::text)),
  constraint comms_send_error_check CHECK (((status = 'failed'::text) = (error_code IS NOT NULL))),
  constraint comms_send_message_check CHECK (((message IS NOT NULL) OR (status = ANY (ARRAY['sent'::text, 'cancelled'::text])) OR (provider_id IS NOT NULL))),
  constraint comms_send_provider_id_check CHECK (((status <> ALL (ARRAY['delivered'::text, 'bounced'::text, 'complained'::text])) OR (provider_id IS NOT NULL))),
  constraint comms_send_purpose_check CHECK ((purpose = ANY (ARRAY['caller'::text, 'account'::text, 'gone'::text]))),
  constraint comms_send_recipients_check CHECK ((cardinality(recipients) > 0)),
  constraint comms_send_requested_check CHECK (((status = ANY (ARRAY['scheduled'::text, 'queued'::text, 'failed'::text, 'cancelled'::text])) OR (requested_at IS NOT NULL))),
  constraint comms_send_scheduled_check CHECK (((status <> 'scheduled'::text) OR (send_at IS NOT NULL))),
  constraint comms_send_settled_check CHECK (((status <> ALL (ARRAY['scheduled'::text, 'queued'::text, 'sending'::text])) = (settled_at IS NOT NULL))),
  constraint comms_send_status_check CHECK ((status = ANY (ARRAY['scheduled'::text, 'queued'::text, 'sending'::text, 'sent'::text, 'failed'::text, 'unknown'::text, 'cancelled'::text, 'delivered'::text, 'bounced'::text, 'complained'::text]))),
  constraint comms_send_stream_check CHECK (((stream = ANY (ARRAY['transactional'::text, 'broadcast'::text])) AND ((channel = 'email'::text) OR (stream = 'transactional'::text))))
);

create table comms_send_count (
  id bigint not null generated always as identity,
  day date not null,
  channel text not null,
  outcome text not null,
  sends bigint not null,
  constraint comms_send_count_pkey PRIMARY KEY (id)
) with (fillfactor=50, autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table comms_suppression (
  channel text not null default 'email'::text,
  address text not null,
  stream text not null default 'transactional'::text,
  reason text not null,
  send_id uuid not null,
  created_at timestamp with time zone not null default now(),
  constraint comms_suppression_pkey PRIMARY KEY (address, stream),
  constraint comms_suppression_address_check CHECK ((address = lower(address))),
  constraint comms_suppression_reason_check CHECK (
CASE channel
    WHEN 'email'::text THEN (reason = ANY (ARRAY['bounced'::text, 'complained'::text, 'unsubscribed'::text]))
    WHEN 'sms'::text THEN ((reason = 'opted_out'::text) AND (stream = 'transactional'::text))
    ELSE false
END),
  constraint comms_suppression_stream_check CHECK ((stream = ANY (ARRAY['transactional'::text, 'broadcast'::text])))
);

create table comms_template (
  name text not null,
  channel text not null,
  subject text,
  text text,
  html text,
  variables jsonb not null default '[]'::jsonb,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone,
  constraint comms_template_pkey PRIMARY KEY (name),
  constraint comms_template_content_check CHECK (
CASE channel
    WHEN 'email'::text THEN ((subject IS NOT NULL) AND ((text IS NOT NULL) OR (html IS NOT NULL)))
    WHEN 'sms'::text THEN ((text IS NOT NULL) AND (subject IS NULL) AND (html IS NULL))
    ELSE false
END),
  constraint comms_template_name_check CHECK ((name ~ '^[a-z0-9][a-z0-9._-]{0,63}$'::text)),
  constraint comms_template_variables_check CHECK ((jsonb_typeof(variables) = 'array'::text))
);

create table document (
  id bigint not null generated always as identity,
  owner_id integer,
  title text not null,
  kind text not null default 'other'::text,
  media_type text not null,
  byte_size bigint not null,
  sha256 bytea not null,
  page_count integer,
  document_date date,
  received_at timestamp with time zone not null default now(),
  source text not null default 'upload'::text,
  channel text,
  note text,
  protected boolean not null default false,
  supersedes_id bigint,
  superseded_by_id bigint,
  attached_to_id bigint,
  attachments_due boolean not null default false,
  day date not null generated always as (COALESCE(document_date, ((received_at AT TIME ZONE 'utc'::text))::date)),
  sealed_password text,
  encoding text,
  given_encoding text,
  tags text[] not null default '{}'::text[],
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone,
  deleted_at timestamp with time zone,
  expires_at timestamp with time zone,
  pruned_at timestamp with time zone,
  "json" text not null generated always as (document_json(id, title, kind, media_type, byte_size, sha256, page_count, document_date, received_at, source, channel, note, protected, supersedes_id, tags, created_at, updated_at, superseded_by_id, attached_to_id)),
  search tsvector not null generated always as (document_vector(title, note, tags, document_date)),
  constraint document_pkey PRIMARY KEY (id),
  constraint document_attached_to_id_fkey FOREIGN KEY (attached_to_id) REFERENCES document(id) ON DELETE SET NULL,
  constraint document_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint document_supersedes_id_fkey FOREIGN KEY (supersedes_id) REFERENCES document(id) ON DELETE SET NULL,
  constraint document_expires_at_check CHECK (((deleted_at IS NULL) = (expires_at IS NULL))),
  constraint document_kind_check CHECK (((length(kind) >= 1) AND (length(kind) <= 32))),
  constraint document_sealed_password_check CHECK ((sealed_password ~ '^[\w-]{8}\.[\w-]+$'::text)),
  constraint document_sha256_check CHECK ((length(sha256) = 32)),
  constraint document_supersedes_id_check CHECK ((supersedes_id <> id)),
  constraint document_tags_check CHECK ((cardinality(tags) <= 100)),
  constraint document_title_check CHECK (((length(title) >= 1) AND (length(title) <= 300)))
);

create table document_page (
  document_id bigint not null,
  owner_id integer,
  page_number integer not null,
  status text not null,
  method text not null,
  model text,
  detail text,
  text text not null default ''::text,
  markdown text,
  search tsvector not null,
  placed_words json,
  image bytea storage external,
  width integer,
  height integer,
  given_up boolean not null default false,
  job_id uuid not null,
  updated_at timestamp with time zone not null default now(),
  constraint document_page_pkey PRIMARY KEY (document_id, page_number),
  constraint document_page_document_id_fkey FOREIGN KEY (document_id) REFERENCES document(id) ON DELETE CASCADE,
  constraint document_page_given_up_check CHECK (((status = 'unread'::text) OR (NOT given_up))),
  constraint document_page_image_check CHECK (((image IS NULL) OR (width IS NOT NULL))),
  constraint document_page_method_check CHECK ((method = ANY (ARRAY['text_layer'::text, 'vision'::text, 'none'::text]))),
  constraint document_page_model_check CHECK (((model IS NULL) OR (method <> 'none'::text))),
  constraint document_page_page_number_check CHECK ((page_number > 0)),
  constraint document_page_reason_check CHECK (((status = 'read'::text) OR (detail IS NOT NULL))),
  constraint document_page_size_check CHECK (((width IS NULL) = (height IS NULL))),
  constraint document_page_status_check CHECK ((status = ANY (ARRAY['read'::text, 'unread'::text])))
) with (autovacuum_vacuum_insert_scale_factor=0.02);

create table document_page_part (
  document_id bigint not null,
  page_number integer not null,
  part integer not null,
  owner_id integer,
  search tsvector not null,
  constraint document_page_part_pkey PRIMARY KEY (document_id, page_number, part),
  constraint document_page_part_document_id_fkey FOREIGN KEY (document_id, page_number) REFERENCES document_page(document_id, page_number) ON DELETE CASCADE,
  constraint document_page_part_part_check CHECK ((part > 0))
) with (autovacuum_vacuum_insert_scale_factor=0.02);

create table document_sum (
  id bigint not null generated always as identity,
  owner_id integer not null,
  documents bigint not null,
  bytes bigint not null,
  pages bigint not null,
  constraint document_sum_pkey PRIMARY KEY (id)
) with (fillfactor=50, autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table document_tag (
  document_id bigint not null,
  label text not null,
  owner_id integer not null,
  kind text not null,
  day date not null,
  title text not null,
  byte_size bigint not null,
  page_count integer not null,
  superseded boolean not null,
  constraint document_tag_pkey PRIMARY KEY (document_id, label),
  constraint document_tag_document_id_fkey FOREIGN KEY (document_id) REFERENCES document(id) ON DELETE CASCADE
);

create table document_tag_count (
  id bigint not null generated always as identity,
  owner_id integer not null,
  label text not null,
  documents bigint not null,
  superseded bigint not null,
  constraint document_tag_count_pkey PRIMARY KEY (id)
) with (autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table email_change (
  id uuid not null,
  account_id integer not null,
  email text not null,
  session_id uuid,
  old_digest bytea not null,
  new_digest bytea not null,
  old_confirmed_at timestamp with time zone,
  new_confirmed_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  constraint email_change_pkey PRIMARY KEY (id),
  constraint email_change_account_id_key UNIQUE (account_id),
  constraint email_change_new_digest_key UNIQUE (new_digest),
  constraint email_change_old_digest_key UNIQUE (old_digest),
  constraint email_change_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint email_change_confirmed_check CHECK (((old_confirmed_at IS NULL) OR (new_confirmed_at IS NULL))),
  constraint email_change_digest_check CHECK (((length(old_digest) = 32) AND (length(new_digest) = 32))),
  constraint email_change_email_check CHECK (((email = lower(email)) AND ((length(email) >= 3) AND (length(email) <= 254))))
);

create table idempotency_key (
  scope text not null,
  key text not null,
  fingerprint bytea not null,
  job_id uuid,
  status smallint,
  headers jsonb,
  body text,
  created_at timestamp with time zone not null default now(),
  constraint idempotency_key_pkey PRIMARY KEY (scope, key),
  constraint idempotency_key_answer_check CHECK (((status IS NULL) = (body IS NULL))),
  constraint idempotency_key_use_check CHECK (((status IS NOT NULL) OR (job_id IS NOT NULL)))
) with (autovacuum_vacuum_scale_factor=0.02);

create table job (
  id uuid not null,
  ordinal bigint not null generated always as identity,
  name text not null,
  queue text not null,
  owner_id integer,
  mailbox text not null,
  mailbox_limit integer,
  key text,
  priority smallint,
  after uuid[],
  after_outcome text,
  batch_id uuid,
  waits_for integer,
  settle text,
  payload jsonb not null,
  status text not null,
  label text not null default ''::text,
  progress_current integer,
  progress_total integer,
  seq integer not null default 0,
  attempt integer not null default 0,
  tries integer not null default 0,
  interruptions integer not null default 0,
  reported integer not null default 0,
  max_tries integer not null,
  lease_id uuid,
  worker text,
  run_at timestamp with time zone not null default now(),
  cancel_requested_at timestamp with time zone,
  result jsonb,
  error_code text,
  error_detail text,
  retry_at timestamp with time zone,
  retry_of uuid,
  request_id text,
  trace_parent text,
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  constraint job_pkey PRIMARY KEY (id),
  constraint job_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint job_after_check CHECK ((((after IS NULL) = (after_outcome IS NULL)) AND ((cardinality(after) >= 1) AND (cardinality(after) <= 100)))),
  constraint job_after_outcome_check CHECK ((after_outcome = ANY (ARRAY['done'::text, 'any'::text]))),
  constraint job_error_check CHECK (
CASE status
    WHEN 'failed'::text THEN (error_code IS NOT NULL)
    WHEN 'cancelled'::text THEN true
    ELSE (error_code IS NULL)
END),
  constraint job_finished_check CHECK (((status = ANY (ARRAY['done'::text, 'failed'::text, 'cancelled'::text])) = (finished_at IS NOT NULL))),
  constraint job_key_check CHECK (((length(key) >= 1) AND (length(key) <= 200))),
  constraint job_lease_check CHECK (((status = 'running'::text) = (lease_id IS NOT NULL))),
  constraint job_mailbox_limit_check CHECK (((mailbox_limit >= 1) AND (mailbox_limit <= 1000))),
  constraint job_max_tries_check CHECK (((max_tries >= 1) AND (max_tries <= 100))),
  constraint job_priority_check CHECK ((priority = ANY (ARRAY['-1'::integer, 1]))),
  constraint job_status_check CHECK ((status = ANY (ARRAY['waiting'::text, 'scheduled'::text, 'available'::text, 'running'::text, 'done'::text, 'failed'::text, 'cancelled'::text]))),
  constraint job_waiting_check CHECK (((waits_for >= 0) AND ((status <> 'waiting'::text) OR (COALESCE(waits_for, 0) > 0))))
) with (fillfactor=85, autovacuum_vacuum_scale_factor=0.01);

create table job_callback (
  job_id uuid not null,
  endpoint_id bigint not null,
  url text not null,
  host text not null,
  api_key_id uuid,
  constraint job_callback_pkey PRIMARY KEY (job_id, endpoint_id, url),
  constraint job_callback_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoint(id) ON DELETE CASCADE,
  constraint job_callback_url_check CHECK (((length(url) >= 8) AND (length(url) <= 2000)))
);

create table job_count (
  id bigint not null generated always as identity,
  queue text not null,
  queued integer not null,
  running integer not null,
  waiting integer not null default 0,
  constraint job_count_pkey PRIMARY KEY (id)
) with (fillfactor=50, autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0);

create table job_dependency (
  after_id uuid not null,
  job_id uuid not null,
  has_ended boolean not null default false,
  constraint job_dependency_pkey PRIMARY KEY (after_id, job_id)
) with (autovacuum_vacuum_scale_factor=0.01);

create table job_event_row (
  job_id uuid not null,
  seq integer not null,
  kind text not null,
  data jsonb not null,
  created_at timestamp with time zone not null default now(),
  attempt integer,
  ended jsonb,
  constraint job_event_row_pkey PRIMARY KEY (job_id, seq)
) with (autovacuum_vacuum_scale_factor=0.01);

create table job_log (
  id bigint not null generated always as identity,
  job_id uuid not null,
  attempt integer,
  at timestamp with time zone not null,
  level text not null,
  message text not null,
  data jsonb not null,
  is_reported boolean not null default false,
  n integer,
  constraint job_log_pkey PRIMARY KEY (job_id, id)
) with (autovacuum_vacuum_scale_factor=0.01);

create table job_tally (
  span integer not null,
  starts_at timestamp with time zone not null,
  queue text not null,
  name text not null,
  outcome text not null,
  attempts bigint not null,
  run_seconds double precision not null,
  wait_seconds double precision not null,
  runs bigint[] not null,
  waits bigint[] not null,
  constraint job_tally_pkey PRIMARY KEY (span, starts_at, queue, name, outcome)
) with (fillfactor=50, autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table llm_current (
  id boolean not null default true,
  vendor text not null,
  model_id text not null,
  temperature numeric,
  max_tokens integer,
  chosen_by integer,
  chosen_at timestamp with time zone not null default now(),
  constraint llm_current_pkey PRIMARY KEY (id),
  constraint llm_current_chosen_by_fkey FOREIGN KEY (chosen_by) REFERENCES account(id) ON DELETE SET NULL,
  constraint llm_current_model_fkey FOREIGN KEY (vendor, model_id) REFERENCES llm_model(vendor, model_id),
  constraint llm_current_id_check CHECK (id),
  constraint llm_current_max_tokens_check CHECK ((max_tokens > 0)),
  constraint llm_current_temperature_check CHECK (((temperature >= (0)::numeric) AND (temperature <= (2)::numeric)))
);

create table llm_list (
  id boolean not null default true,
  source text not null,
  url text,
  applied_at timestamp with time zone not null,
  skipped jsonb not null default '[]'::jsonb,
  refused_at timestamp with time zone,
  refusal text,
  constraint llm_list_pkey PRIMARY KEY (id),
  constraint llm_list_id_check CHECK (id),
  constraint llm_list_refusal_check CHECK (((refused_at IS NULL) = (refusal IS NULL))),
  constraint llm_list_source_check CHECK ((source = ANY (ARRAY['built-in'::text, 'sync'::text])))
);

create table llm_model (
  vendor text not null,
  model_id text not null,
  title text not null,
  family text,
  context_window integer not null,
  max_output integer not null,
  input_modalities text[] not null,
  output_modalities text[] not null,
  modalities text[] not null,
  reasoning boolean not null,
  temperature boolean not null default true,
  released_on date,
  disabled boolean not null,
  constraint llm_model_pkey PRIMARY KEY (vendor, model_id),
  constraint llm_model_vendor_fkey FOREIGN KEY (vendor) REFERENCES llm_vendor(id),
  constraint llm_model_limits_check CHECK (((context_window >= 0) AND (max_output >= 0))),
  constraint llm_model_modalities_check CHECK (((modalities <@ '{text,image,audio,video}'::text[]) AND (modalities @> (input_modalities || output_modalities)) AND (modalities <@ (input_modalities || output_modalities)))),
  constraint llm_model_model_id_check CHECK (((length(model_id) >= 1) AND (length(model_id) <= 200))),
  constraint llm_model_title_check CHECK (((length(title) >= 1) AND (length(title) <= 300)))
);

create table llm_price (
  vendor text not null,
  model_id text not null,
  valid_from date not null,
  input numeric,
  output numeric,
  cache_read numeric,
  cache_write numeric,
  reasoning numeric,
  input_audio numeric,
  output_audio numeric,
  tiers jsonb not null default '[]'::jsonb,
  constraint llm_price_pkey PRIMARY KEY (vendor, model_id, valid_from),
  constraint llm_price_model_fkey FOREIGN KEY (vendor, model_id) REFERENCES llm_model(vendor, model_id),
  constraint llm_price_amount_check CHECK ((LEAST(input, output, cache_read, cache_write, reasoning, input_audio, output_audio) >= (0)::numeric)),
  constraint llm_price_known_check CHECK ((((input IS NULL) = (output IS NULL)) AND ((input IS NOT NULL) OR ((cache_read IS NULL) AND (cache_write IS NULL) AND (reasoning IS NULL) AND (input_audio IS NULL) AND (output_audio IS NULL) AND (tiers = '[]'::jsonb))))),
  constraint llm_price_tiers_check CHECK ((jsonb_typeof(tiers) = 'array'::text))
);

create table llm_vendor (
  id text not null,
  name text not null,
  constraint llm_vendor_pkey PRIMARY KEY (id),
  constraint llm_vendor_id_check CHECK ((id ~ '^[a-z0-9][a-z0-9._-]{0,99}$'::text)),
  constraint llm_vendor_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200)))
);

create table login_failure (
  subject bytea not null,
  failures integer not null,
  failed_at timestamp with time zone not null,
  locked_until timestamp with time zone,
  constraint login_failure_pkey PRIMARY KEY (subject),
  constraint login_failure_failures_check CHECK ((failures > 0)),
  constraint login_failure_subject_check CHECK ((length(subject) = 32))
);

create table migration (
  name text not null,
  applied_at timestamp with time zone not null default now(),
  constraint migration_pkey PRIMARY KEY (name)
);

create table migration_functions (
  area text not null,
  digest text not null,
  constraint migration_functions_pkey PRIMARY KEY (area)
);

create table oidc_identity (
  id uuid not null,
  account_id integer not null,
  issuer text not null,
  subject text not null,
  email text,
  created_at timestamp with time zone not null default now(),
  last_used_at timestamp with time zone,
  constraint oidc_identity_pkey PRIMARY KEY (id),
  constraint oidc_identity_account_id_key UNIQUE (account_id, issuer),
  constraint oidc_identity_subject_key UNIQUE (issuer, subject),
  constraint oidc_identity_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE
);

create table oidc_login (
  digest bytea not null,
  issuer text not null,
  subject text not null,
  email text,
  full_name text,
  expires_at timestamp with time zone not null,
  constraint oidc_login_pkey PRIMARY KEY (digest),
  constraint oidc_login_digest_check CHECK ((length(digest) = 32))
) with (autovacuum_vacuum_scale_factor=0.02);

create table organization (
  id integer not null generated always as identity,
  name text not null,
  slug text,
  description text,
  is_active boolean not null default true,
  created_by integer,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone,
  deleted_at timestamp with time zone,
  constraint organization_pkey PRIMARY KEY (id),
  constraint organization_slug_key UNIQUE (slug),
  constraint organization_created_by_fkey FOREIGN KEY (created_by) REFERENCES account(id) ON DELETE SET NULL,
  constraint organization_deleted_check CHECK (((deleted_at IS NULL) = (slug IS NOT NULL))),
  constraint organization_description_check CHECK (((length(description) >= 1) AND (length(description) <= 2000))),
  constraint organization_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
  constraint organization_slug_check CHECK ((slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'::text))
);

create table organization_invite (
  id bigint not null generated always as identity,
  organization_id integer not null,
  email text not null,
  role text not null,
  status text not null default 'pending'::text,
  invited_by integer,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  accepted_at timestamp with time zone,
  constraint organization_invite_pkey PRIMARY KEY (id),
  constraint organization_invite_invited_by_fkey FOREIGN KEY (invited_by) REFERENCES account(id) ON DELETE SET NULL,
  constraint organization_invite_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint organization_invite_accepted_at_check CHECK (((status = 'accepted'::text) = (accepted_at IS NOT NULL))),
  constraint organization_invite_email_check CHECK (((email = lower(email)) AND ((length(email) >= 3) AND (length(email) <= 254)))),
  constraint organization_invite_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'member'::text]))),
  constraint organization_invite_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'accepted'::text, 'revoked'::text, 'expired'::text])))
);

create table organization_member (
  id bigint not null generated always as identity,
  organization_id integer not null,
  user_id integer not null,
  role text not null,
  joined_at timestamp with time zone not null default now(),
  constraint organization_member_pkey PRIMARY KEY (id),
  constraint organization_member_organization_id_user_id_key UNIQUE (organization_id, user_id),
  constraint organization_member_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint organization_member_user_id_fkey FOREIGN KEY (user_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint organization_member_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'member'::text])))
);

create table passkey (
  id uuid not null,
  account_id integer not null,
  credential_id bytea not null,
  public_key bytea not null,
  counter bigint not null,
  transports text[] not null,
  name text not null,
  is_synced boolean not null,
  created_at timestamp with time zone not null default now(),
  last_used_at timestamp with time zone,
  constraint passkey_pkey PRIMARY KEY (id),
  constraint passkey_credential_id_key UNIQUE (credential_id),
  constraint passkey_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint passkey_counter_check CHECK ((counter >= 0)),
  constraint passkey_credential_id_check CHECK (((length(credential_id) >= 1) AND (length(credential_id) <= 1023))),
  constraint passkey_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint passkey_public_key_check CHECK (((length(public_key) >= 1) AND (length(public_key) <= 4000))),
  constraint passkey_transports_check CHECK ((cardinality(transports) <= 10))
);

create table passkey_challenge (
  challenge bytea not null,
  account_id integer,
  expires_at timestamp with time zone not null,
  constraint passkey_challenge_pkey PRIMARY KEY (challenge),
  constraint passkey_challenge_check CHECK ((length(challenge) = 32))
) with (autovacuum_vacuum_scale_factor=0.02);

create table payment_customer (
  id bigint not null generated always as identity,
  user_id integer,
  provider_customer_id text not null,
  replaced_by bigint,
  created_at timestamp with time zone not null default now(),
  constraint payment_customer_pkey PRIMARY KEY (id),
  constraint payment_customer_provider_customer_id_key UNIQUE (provider_customer_id),
  constraint payment_customer_user_id_key UNIQUE (user_id),
  constraint payment_customer_same_as_fkey FOREIGN KEY (replaced_by) REFERENCES payment_customer(id),
  constraint payment_customer_user_id_fkey FOREIGN KEY (user_id) REFERENCES account(id) ON DELETE SET NULL
);

create table payment_dispute (
  id bigint not null generated always as identity,
  transaction_id bigint,
  customer_id bigint,
  provider_dispute_id text not null,
  facts jsonb not null default '{}'::jsonb,
  status text not null generated always as ((facts #>> '{state,1,status}'::text[])),
  event_type text not null generated always as ((facts #>> '{state,1,event_type}'::text[])),
  reason text not null generated always as (COALESCE((facts #>> '{reason,1}'::text[]), ''::text)),
  amount bigint generated always as (((facts #>> '{money,1,amount}'::text[]))::bigint),
  currency text generated always as ((facts #>> '{money,1,currency}'::text[])),
  evidence_due_by timestamp with time zone generated always as (to_timestamp(((facts #>> '{due_by,1}'::text[]))::double precision)),
  provider_charge_id text generated always as ((facts #>> '{charge,1}'::text[])),
  provider_payment_intent_id text generated always as ((facts #>> '{payment_intent,1}'::text[])),
  created_at timestamp with time zone not null generated always as (to_timestamp(((facts #>> '{created,1}'::text[]))::double precision)),
  updated_at timestamp with time zone not null generated always as (to_timestamp(((facts #>> '{state,1,at}'::text[]))::double precision)),
  constraint payment_dispute_pkey PRIMARY KEY (id),
  constraint payment_dispute_provider_dispute_id_key UNIQUE (provider_dispute_id),
  constraint payment_dispute_transaction_id_fkey FOREIGN KEY (transaction_id) REFERENCES payment_transaction(id),
  constraint payment_dispute_status_check CHECK ((status = ANY (ARRAY['warning_issued'::text, 'warning_closed'::text, 'needs_response'::text, 'under_review'::text, 'won'::text, 'lost'::text, 'charge_refunded'::text])))
);

create table payment_event (
  id text not null,
  type text not null,
  created_at timestamp with time zone not null,
  received_at timestamp with time zone not null default now(),
  data jsonb,
  job_id uuid,
  applied_at timestamp with time zone,
  constraint payment_event_pkey PRIMARY KEY (id),
  constraint payment_event_applied_at_check CHECK (((data IS NULL) = (applied_at IS NOT NULL)))
);

create table payment_ignored_event (
  reason text not null,
  events bigint not null,
  last_type text not null,
  last_received_at timestamp with time zone not null default now(),
  constraint payment_ignored_event_pkey PRIMARY KEY (reason),
  constraint payment_ignored_event_reason_check CHECK ((reason = ANY (ARRAY['connected_account'::text, 'other_mode'::text])))
) with (fillfactor=50, autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table payment_key (
  single boolean not null default true,
  missing_rights text[] not null,
  constraint payment_key_pkey PRIMARY KEY (single),
  constraint payment_key_single_check CHECK (single)
);

create table payment_reconciliation (
  single boolean not null default true,
  read_until timestamp with time zone not null,
  constraint payment_reconciliation_pkey PRIMARY KEY (single),
  constraint payment_reconciliation_single_check CHECK (single)
);

create table payment_reference (
  provider_id text not null,
  transaction_id bigint not null,
  constraint payment_reference_pkey PRIMARY KEY (provider_id),
  constraint payment_reference_transaction_id_fkey FOREIGN KEY (transaction_id) REFERENCES payment_transaction(id) ON DELETE CASCADE
);

create table payment_subscription (
  id bigint not null generated always as identity,
  customer_id bigint,
  provider_subscription_id text not null,
  facts jsonb not null default '{}'::jsonb,
  status text not null generated always as (COALESCE((facts #>> '{status,1}'::text[]), 'incomplete'::text)),
  plan_name text not null generated always as (COALESCE((facts #>> '{plan_name,1}'::text[]), ''::text)),
  current_period_start timestamp with time zone generated always as (to_timestamp(((facts #>> '{period_start,1}'::text[]))::double precision)),
  current_period_end timestamp with time zone generated always as (to_timestamp(((facts #>> '{period_end,1}'::text[]))::double precision)),
  cancel_at timestamp with time zone generated always as (to_timestamp(((facts #>> '{cancel_at,1}'::text[]))::double precision)),
  cancel_at_period_end boolean not null generated always as ((COALESCE(((facts #>> '{cancel_at_period_end,1}'::text[]))::boolean, false) OR COALESCE((((facts #>> '{cancel_at,1}'::text[]))::bigint <= COALESCE(((facts #>> '{period_end,1}'::text[]))::bigint, ((facts #>> '{cancel_at,1}'::text[]))::bigint)), false))),
  constraint payment_subscription_pkey PRIMARY KEY (id),
  constraint payment_subscription_provider_subscription_id_key UNIQUE (provider_subscription_id),
  constraint payment_subscription_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES payment_customer(id),
  constraint payment_subscription_status_check CHECK ((status = ANY (ARRAY['active'::text, 'past_due'::text, 'canceled'::text, 'incomplete'::text, 'trialing'::text, 'unpaid'::text])))
);

create table payment_subscription_count (
  id bigint not null generated always as identity,
  customer_id integer not null,
  subscriptions bigint not null,
  constraint payment_subscription_count_pkey PRIMARY KEY (id)
) with (fillfactor=50, autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table payment_sum (
  id bigint not null generated always as identity,
  customer_id integer not null,
  currency text not null,
  day date not null,
  transactions bigint not null,
  payments bigint not null,
  revenue bigint not null,
  constraint payment_sum_pkey PRIMARY KEY (id)
) with (autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table payment_transaction (
  id bigint not null generated always as identity,
  customer_id bigint,
  charge_id bigint,
  facts jsonb not null default '{}'::jsonb,
  refunds bigint not null default 0,
  reserved bigint not null default 0,
  returned bigint not null default 0,
  job_id uuid,
  reason text,
  looked_up_at timestamp with time zone,
  type text not null generated always as (
CASE
    WHEN (charge_id IS NOT NULL) THEN 'refund'::text
    WHEN (facts ? 'subscription'::text) THEN 'subscription'::text
    ELSE 'charge'::text
END),
  status text not null generated always as (payment_status((charge_id IS NOT NULL), facts, payment_refunded(facts, refunds, returned))),
  amount bigint generated always as (((facts #>> '{money,1,amount}'::text[]))::bigint),
  currency text generated always as ((facts #>> '{money,1,currency}'::text[])),
  refunded bigint not null generated always as (payment_refunded(facts, refunds, returned)),
  description text generated always as ((facts #>> '{description,1}'::text[])),
  provider_charge_id text generated always as ((facts #>> '{charge,1}'::text[])),
  provider_payment_intent_id text generated always as ((facts #>> '{payment_intent,1}'::text[])),
  provider_invoice_id text generated always as ((facts #>> '{invoice,1}'::text[])),
  provider_session_id text generated always as ((facts #>> '{session,1}'::text[])),
  provider_subscription_id text generated always as ((facts #>> '{subscription,1}'::text[])),
  provider_refund_id text generated always as ((facts #>> '{refund,1}'::text[])),
  provider_transaction_id text generated always as (COALESCE((facts #>> '{refund,1}'::text[]), (facts #>> '{invoice,1}'::text[]), (facts #>> '{payment_intent,1}'::text[]), (facts #>> '{charge,1}'::text[]), (facts #>> '{session,1}'::text[]))),
  created_at timestamp with time zone generated always as (to_timestamp(((facts #>> '{created,1}'::text[]))::double precision)),
  shown boolean not null generated always as (((facts ? 'money'::text) AND (facts ? 'created'::text) AND ((charge_id IS NULL) OR (facts ? 'refund'::text)))),
  unlinked boolean not null generated always as ((COALESCE(((facts #>> '{unlinked,1}'::text[]))::boolean, false) AND (NOT (facts ? 'payment_intent'::text)) AND (NOT (facts ? 'charge'::text)))),
  constraint payment_transaction_pkey PRIMARY KEY (id),
  constraint payment_transaction_job_id_key UNIQUE (job_id),
  constraint payment_transaction_charge_id_fkey FOREIGN KEY (charge_id) REFERENCES payment_transaction(id),
  constraint payment_transaction_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES payment_customer(id),
  constraint payment_transaction_amount_check CHECK ((amount >= 0)),
  constraint payment_transaction_currency_check CHECK ((currency = lower(currency))),
  constraint payment_transaction_refunds_check CHECK (((refunds >= 0) AND (reserved >= 0) AND (refunds <= amount))),
  constraint payment_transaction_status_check CHECK ((status = ANY (ARRAY['succeeded'::text, 'pending'::text, 'failed'::text, 'refunded'::text, 'partially_refunded'::text, 'canceled'::text])))
);

create table queue_control (
  queue text not null,
  paused_at timestamp with time zone,
  paused_by integer,
  most_running integer,
  constraint queue_control_pkey PRIMARY KEY (queue),
  constraint queue_control_paused_by_fkey FOREIGN KEY (paused_by) REFERENCES account(id) ON DELETE SET NULL,
  constraint queue_control_most_running_check CHECK (((most_running >= 1) AND (most_running <= 1000000))),
  constraint queue_control_paused_check CHECK (((paused_at IS NOT NULL) OR (paused_by IS NULL)))
);

create table rag_chunk (
  file_id bigint not null,
  ordinal integer not null,
  content text not null,
  start_offset integer not null,
  end_offset integer not null,
  start_line integer not null,
  end_line integer not null,
  page integer,
  heading text,
  collection_id integer not null,
  number integer not null,
  terms integer[] not null storage external,
  common_terms integer[] not null storage external,
  constraint rag_chunk_pkey PRIMARY KEY (file_id, ordinal),
  constraint rag_chunk_number_key UNIQUE (collection_id, number) INCLUDE (file_id),
  constraint rag_chunk_file_id_fkey FOREIGN KEY (file_id) REFERENCES rag_file(id) ON DELETE CASCADE,
  constraint rag_chunk_number_check CHECK ((number >= 0))
) with (autovacuum_vacuum_scale_factor=0.05);

create table rag_collection (
  id integer not null generated always as identity,
  name text not null,
  owner_id integer,
  selection jsonb,
  document_metadata jsonb not null default '{}'::jsonb,
  version bigint not null default 0,
  embedding_model text,
  dimensions integer,
  has_neighbours boolean not null default false,
  document_count integer not null default 0,
  chunk_count integer not null default 0,
  term_count bigint not null default 0,
  dictionaries text[] not null default '{}'::text[],
  metadata jsonb not null default '{}'::jsonb,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  deleted_at timestamp with time zone,
  constraint rag_collection_pkey PRIMARY KEY (id),
  constraint rag_collection_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint rag_collection_counts_check CHECK ((LEAST((document_count)::bigint, (chunk_count)::bigint, term_count) >= 0)),
  constraint rag_collection_dimensions_check CHECK ((((embedding_model IS NULL) = (dimensions IS NULL)) AND ((dimensions >= 1) AND (dimensions <= 16000)))),
  constraint rag_collection_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint rag_collection_owner_id_check CHECK (((owner_id IS NULL) OR (selection IS NOT NULL)))
);

create table rag_file (
  id bigint not null generated always as identity,
  collection_id integer not null,
  build_id uuid,
  source text not null,
  document_id bigint,
  metadata jsonb not null default '{}'::jsonb,
  sha256 bytea not null,
  byte_size bigint not null,
  format text not null,
  analysis integer not null,
  chunk_count integer not null,
  term_count integer not null default 0,
  dictionary text not null,
  created_at timestamp with time zone not null default now(),
  constraint rag_file_pkey PRIMARY KEY (id),
  constraint rag_file_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES rag_collection(id) ON DELETE CASCADE,
  constraint rag_file_metadata_check CHECK ((jsonb_typeof(metadata) = 'object'::text)),
  constraint rag_file_sha256_check CHECK ((octet_length(sha256) = 32))
) with (autovacuum_vacuum_scale_factor=0.05);

create table rag_posting (
  collection_id integer not null,
  term integer not null,
  block integer not null,
  postings bytea not null storage external,
  constraint rag_posting_pkey PRIMARY KEY (collection_id, term, block),
  constraint rag_posting_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES rag_collection(id) ON DELETE CASCADE,
  constraint rag_posting_postings_check CHECK (((octet_length(postings) > 0) AND ((octet_length(postings) % 4) = 0)))
) with (autovacuum_vacuum_scale_factor=0.05);

create table rag_vector (
  file_id bigint not null,
  model text not null,
  dimensions integer not null,
  floats bytea not null storage external,
  constraint rag_vector_pkey PRIMARY KEY (file_id, model),
  constraint rag_vector_file_id_fkey FOREIGN KEY (file_id) REFERENCES rag_file(id) ON DELETE CASCADE,
  constraint rag_vector_floats_check CHECK ((((dimensions >= 1) AND (dimensions <= 16000)) AND ((octet_length(floats) % (4 * dimensions)) = 0)))
) with (autovacuum_vacuum_scale_factor=0.05);

create table refresh_token (
  digest bytea not null,
  session_id uuid not null,
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  rotated_at timestamp with time zone,
  constraint refresh_token_pkey PRIMARY KEY (digest),
  constraint refresh_token_session_id_fkey FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE,
  constraint refresh_token_digest_check CHECK ((length(digest) = 32))
) with (autovacuum_vacuum_scale_factor=0.02);

create table request_limit (
  name text not null,
  subject text not null,
  hits timestamp with time zone[] not null,
  expires_at timestamp with time zone not null,
  constraint request_limit_pkey PRIMARY KEY (name, subject)
) with (autovacuum_vacuum_scale_factor=0.02);

create table schedule (
  id text not null,
  owner_id integer,
  is_built_in boolean not null default false,
  name text not null,
  task_name text not null,
  queue_type text not null,
  args jsonb not null,
  cron text,
  every_seconds integer,
  time_zone text not null,
  start_at timestamp with time zone,
  end_at timestamp with time zone,
  overlap text not null,
  catch_up text not null,
  paused_at timestamp with time zone,
  paused_by integer,
  next_at timestamp with time zone,
  last_job_id uuid,
  recent_job_ids uuid[] not null default '{}'::uuid[],
  last_run_at timestamp with time zone,
  last_skipped_at timestamp with time zone,
  last_skip_reason text,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint schedule_pkey PRIMARY KEY (id),
  constraint schedule_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint schedule_paused_by_fkey FOREIGN KEY (paused_by) REFERENCES account(id) ON DELETE SET NULL,
  constraint schedule_built_in_check CHECK (((NOT is_built_in) OR (owner_id IS NULL))),
  constraint schedule_catch_up_check CHECK ((catch_up = ANY (ARRAY['none'::text, 'last'::text]))),
  constraint schedule_every_seconds_check CHECK (((every_seconds >= 60) AND (every_seconds <= 31536000))),
  constraint schedule_last_run_check CHECK (((last_job_id IS NULL) = (last_run_at IS NULL))),
  constraint schedule_last_skip_check CHECK (((last_skipped_at IS NULL) = (last_skip_reason IS NULL))),
  constraint schedule_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint schedule_overlap_check CHECK ((overlap = ANY (ARRAY['skip'::text, 'queue'::text]))),
  constraint schedule_paused_by_check CHECK (((paused_by IS NULL) OR (paused_at IS NOT NULL))),
  constraint schedule_paused_check CHECK (((paused_at IS NULL) OR (next_at IS NULL))),
  constraint schedule_period_check CHECK ((end_at > start_at)),
  constraint schedule_skip_reason_check CHECK ((last_skip_reason = ANY (ARRAY['late'::text, 'overlap'::text, 'account'::text, 'task'::text, 'quota'::text]))),
  constraint schedule_timing_check CHECK (((cron IS NULL) <> (every_seconds IS NULL)))
) with (fillfactor=80, autovacuum_vacuum_scale_factor=0.01);

create table search_pass (
  started_at timestamp with time zone not null default now(),
  document_id bigint not null default 0,
  page_number integer not null default 0,
  post_id bigint not null default 0
);

create table search_word (
  owner_id integer not null,
  word text not null,
  seen_at timestamp with time zone not null default now(),
  constraint search_word_pkey PRIMARY KEY (owner_id, word)
);

create table session (
  id uuid not null,
  account_id integer not null,
  created_at timestamp with time zone not null default now(),
  revoked_at timestamp with time zone,
  ended_at timestamp with time zone,
  address text,
  place text,
  user_agent text,
  device text,
  by_passkey boolean not null default false,
  last_used_at timestamp with time zone,
  last_address text,
  last_place text,
  constraint session_pkey PRIMARY KEY (id),
  constraint session_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint session_ended_check CHECK (((ended_at IS NULL) OR (revoked_at IS NOT NULL)))
);

create table setting (
  name text not null,
  value bigint not null,
  constraint setting_pkey PRIMARY KEY (name)
);

create table start_rate (
  name text not null,
  starts integer not null,
  seconds double precision not null,
  burst integer not null,
  next_at timestamp with time zone not null default now(),
  line_at timestamp with time zone not null default '-infinity'::timestamp with time zone,
  constraint start_rate_pkey PRIMARY KEY (name),
  constraint start_rate_burst_check CHECK (((burst >= 1) AND (burst <= starts))),
  constraint start_rate_seconds_check CHECK (((seconds >= (0.001)::double precision) AND (seconds <= (86400)::double precision))),
  constraint start_rate_starts_check CHECK (((starts >= 1) AND (starts <= 1000000)))
) with (fillfactor=50, autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table stored_key (
  id uuid not null,
  secret text not null,
  constraint stored_key_pkey PRIMARY KEY (id),
  constraint stored_key_secret_check CHECK ((secret ~ '^[\w-]{8}\.[\w-]+$'::text))
);

create table table_size (
  day date not null,
  name text not null,
  rows bigint not null,
  bytes bigint not null,
  constraint table_size_pkey PRIMARY KEY (day, name)
);

create table voice_preview (
  digest bytea not null,
  owner_id integer,
  job_id uuid,
  calls integer not null default 0,
  provider text not null,
  model text not null,
  voice text not null,
  speed numeric not null,
  text text not null,
  characters integer not null generated always as (length(text)),
  language text,
  spoken integer not null default 0,
  generation uuid,
  byte_size integer,
  used_at timestamp with time zone not null default now(),
  constraint voice_preview_pkey PRIMARY KEY (digest),
  constraint voice_preview_job_id_key UNIQUE (job_id),
  constraint voice_preview_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint voice_preview_byte_size_check CHECK (((byte_size IS NULL) OR ((byte_size > 0) AND (generation IS NOT NULL)))),
  constraint voice_preview_counts_check CHECK ((LEAST(spoken, calls) >= 0)),
  constraint voice_preview_digest_check CHECK ((length(digest) = 32)),
  constraint voice_preview_owner_id_check CHECK (((owner_id IS NULL) OR (job_id IS NOT NULL)))
);

create table voice_preview_chunk (
  digest bytea not null,
  generation uuid not null,
  ordinal integer not null,
  piece integer not null default 0,
  start integer not null,
  bytes bytea not null storage external,
  constraint voice_preview_chunk_pkey PRIMARY KEY (digest, generation, ordinal),
  constraint voice_preview_chunk_digest_fkey FOREIGN KEY (digest) REFERENCES voice_preview(digest) ON DELETE CASCADE
);

create table voice_settings (
  id boolean not null default true,
  tts_provider text not null,
  tts_model text not null,
  tts_voice text not null,
  tts_speed numeric not null,
  stt_provider text not null,
  stt_model text not null,
  stt_language text,
  updated_by integer,
  updated_at timestamp with time zone not null default now(),
  constraint voice_settings_pkey PRIMARY KEY (id),
  constraint voice_settings_updated_by_fkey FOREIGN KEY (updated_by) REFERENCES account(id) ON DELETE SET NULL,
  constraint voice_settings_id_check CHECK (id),
  constraint voice_settings_stt_language_check CHECK ((stt_language ~ '^[a-z]{2,3}(-[A-Za-z0-9]{1,8})*$'::text)),
  constraint voice_settings_tts_speed_check CHECK (((tts_speed >= 0.25) AND (tts_speed <= (4)::numeric)))
);

create table voice_transcription (
  id uuid not null,
  owner_id integer,
  document_id bigint not null,
  job_id uuid not null,
  status text not null default 'pending'::text,
  provider text not null,
  model text not null,
  requested_language text,
  prompt text,
  calls integer not null default 0,
  text text,
  language text,
  duration_seconds numeric,
  segments jsonb not null default '[]'::jsonb,
  usage jsonb,
  cost numeric,
  error_code text,
  error_detail text,
  created_at timestamp with time zone not null default now(),
  settled_at timestamp with time zone,
  constraint voice_transcription_pkey PRIMARY KEY (id),
  constraint voice_transcription_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint voice_transcription_amounts_check CHECK (((LEAST(duration_seconds, cost) >= (0)::numeric) AND (calls >= 0))),
  constraint voice_transcription_error_check CHECK (((status = 'failed'::text) = (error_code IS NOT NULL))),
  constraint voice_transcription_prompt_check CHECK (((length(prompt) >= 1) AND (length(prompt) <= 4000))),
  constraint voice_transcription_requested_language_check CHECK ((requested_language ~ '^[a-z]{2,3}(-[A-Za-z0-9]{1,8})*$'::text)),
  constraint voice_transcription_segments_check CHECK ((jsonb_typeof(segments) = 'array'::text)),
  constraint voice_transcription_settled_check CHECK (((status = 'pending'::text) = (settled_at IS NULL))),
  constraint voice_transcription_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'done'::text, 'failed'::text, 'cancelled'::text]))),
  constraint voice_transcription_text_check CHECK (((status = 'done'::text) = (text IS NOT NULL)))
);

create table voice_transcription_piece (
  transcription_id uuid not null,
  ordinal integer not null,
  starts double precision not null,
  ends double precision not null,
  answer jsonb not null,
  constraint voice_transcription_piece_pkey PRIMARY KEY (transcription_id, ordinal),
  constraint voice_transcription_piece_transcription_id_fkey FOREIGN KEY (transcription_id) REFERENCES voice_transcription(id) ON DELETE CASCADE,
  constraint voice_transcription_piece_times_check CHECK (((starts >= (0)::double precision) AND (ends > starts)))
);

create table webhook_delivery (
  id bigint not null generated always as identity,
  endpoint_id bigint not null,
  account_id integer not null,
  host text not null,
  message_id uuid not null default gen_random_uuid(),
  type text not null,
  url text,
  body text not null,
  status text not null default 'pending'::text,
  due_at timestamp with time zone default now(),
  since timestamp with time zone not null default now(),
  attempts integer not null default 0,
  answers jsonb not null default '[]'::jsonb,
  created_at timestamp with time zone not null default now(),
  ended_at timestamp with time zone,
  constraint webhook_delivery_pkey PRIMARY KEY (id),
  constraint webhook_delivery_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoint(id) ON DELETE CASCADE,
  constraint webhook_delivery_due_check CHECK (((status = 'pending'::text) = (due_at IS NOT NULL))),
  constraint webhook_delivery_ended_check CHECK (((status = 'pending'::text) = (ended_at IS NULL))),
  constraint webhook_delivery_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text])))
) with (autovacuum_vacuum_scale_factor=0.02);

create table webhook_endpoint (
  id bigint not null generated always as identity,
  account_id integer,
  organization_id integer,
  api_key_id uuid,
  expires_at timestamp with time zone,
  url text,
  host text,
  proved_at timestamp with time zone,
  events text[] not null,
  description text,
  is_active boolean not null default true,
  failures integer not null default 0,
  failing_since timestamp with time zone,
  blocked_until timestamp with time zone,
  paused_until timestamp with time zone,
  disabled_at timestamp with time zone,
  secret text not null,
  previous_secret text,
  secret_version integer not null default 1,
  secret_rolled_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone,
  deleted_at timestamp with time zone,
  constraint webhook_endpoint_pkey PRIMARY KEY (id),
  constraint webhook_endpoint_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint webhook_endpoint_deleted_check CHECK (((deleted_at IS NULL) OR (NOT is_active))),
  constraint webhook_endpoint_description_check CHECK ((length(description) <= 500)),
  constraint webhook_endpoint_disabled_check CHECK (((disabled_at IS NULL) OR (NOT is_active))),
  constraint webhook_endpoint_events_check CHECK (((url IS NULL) = (cardinality(events) = 0))),
  constraint webhook_endpoint_failures_check CHECK (((failures > 0) = (failing_since IS NOT NULL))),
  constraint webhook_endpoint_host_check CHECK (((url IS NULL) = (host IS NULL))),
  constraint webhook_endpoint_previous_secret_check CHECK ((previous_secret ~ '^[\w-]{8}\.[\w-]+$'::text)),
  constraint webhook_endpoint_secret_check CHECK ((secret ~ '^[\w-]{8}\.[\w-]+$'::text)),
  constraint webhook_endpoint_service_check CHECK (((account_id IS NOT NULL) OR ((url IS NOT NULL) AND (organization_id IS NULL)))),
  constraint webhook_endpoint_url_check CHECK (((length(url) >= 8) AND (length(url) <= 2000)))
);

create table webhook_pending_sum (
  id bigint not null generated always as identity,
  account_id integer not null,
  deliveries bigint not null,
  constraint webhook_pending_sum_pkey PRIMARY KEY (id)
) with (fillfactor=50, autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table webhook_rate (
  account_id integer not null,
  host text not null,
  slots bigint[] not null,
  counts integer[] not null,
  blocked_until timestamp with time zone,
  expires_at timestamp with time zone not null,
  constraint webhook_rate_pkey PRIMARY KEY (account_id, host)
) with (autovacuum_vacuum_scale_factor=0.02);

create table worker_claim (
  lease_id uuid not null,
  claim_id uuid not null,
  job_ids uuid[] not null,
  created_at timestamp with time zone not null default now(),
  constraint worker_claim_pkey PRIMARY KEY (lease_id, claim_id),
  constraint worker_claim_lease_id_fkey FOREIGN KEY (lease_id) REFERENCES worker_lease(id) ON DELETE CASCADE
) with (autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table worker_counter (
  name text not null,
  value bigint not null,
  constraint worker_counter_pkey PRIMARY KEY (name)
) with (fillfactor=50);

create table worker_delivery (
  id bigint not null generated always as identity,
  queue text not null,
  mailbox text not null,
  name text not null,
  mailbox_limit integer,
  first bigint not null,
  priority smallint not null,
  constraint worker_delivery_pkey PRIMARY KEY (id)
) with (autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0.01);

create table worker_lease (
  id uuid not null,
  name text not null,
  queues text[] not null,
  pool_ids text[] not null default '{}'::text[],
  threads integer not null default 0,
  busy integer not null default 0,
  memory_bytes bigint not null default 0,
  started_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  drained_at timestamp with time zone,
  steady_since timestamp with time zone not null default now(),
  queue text,
  info jsonb,
  ttl_seconds integer,
  constraint worker_lease_pkey PRIMARY KEY (id),
  constraint worker_lease_http_check CHECK ((((queue IS NULL) = (info IS NULL)) AND ((queue IS NULL) = (ttl_seconds IS NULL)))),
  constraint worker_lease_ttl_check CHECK (((ttl_seconds >= 5) AND (ttl_seconds <= 600)))
);

create table worker_queue (
  name text not null,
  account_id integer,
  organization_id integer,
  created_by integer,
  description text,
  is_open boolean not null default false,
  endpoint_url text,
  endpoint_concurrency integer,
  endpoint_secret text,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint worker_queue_pkey PRIMARY KEY (name),
  constraint worker_queue_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint worker_queue_created_by_fkey FOREIGN KEY (created_by) REFERENCES account(id) ON DELETE SET NULL,
  constraint worker_queue_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organization(id) ON DELETE CASCADE,
  constraint worker_queue_description_check CHECK ((length(description) <= 500)),
  constraint worker_queue_endpoint_check CHECK ((((endpoint_url IS NULL) = (endpoint_concurrency IS NULL)) AND ((endpoint_url IS NULL) = (endpoint_secret IS NULL)))),
  constraint worker_queue_endpoint_concurrency_check CHECK (((endpoint_concurrency >= 1) AND (endpoint_concurrency <= 1000))),
  constraint worker_queue_endpoint_secret_check CHECK ((endpoint_secret ~ '^[\w-]{8}\.[\w-]+$'::text)),
  constraint worker_queue_endpoint_url_check CHECK (((length(endpoint_url) >= 8) AND (length(endpoint_url) <= 2000))),
  constraint worker_queue_name_check CHECK ((name ~ '^[a-z][a-z0-9_-]{0,62}$'::text)),
  constraint worker_queue_owner_check CHECK (((account_id IS NULL) OR (organization_id IS NULL)))
);

create table worker_task (
  queue text not null,
  name text not null,
  args_schema jsonb,
  result_schema jsonb,
  max_tries integer,
  timeout_seconds integer,
  stall_seconds integer,
  most_running integer,
  secrets text[] not null default '{}'::text[],
  constraint worker_task_pkey PRIMARY KEY (queue, name),
  constraint worker_task_queue_fkey FOREIGN KEY (queue) REFERENCES worker_queue(name) ON DELETE CASCADE,
  constraint worker_task_max_tries_check CHECK (((max_tries >= 1) AND (max_tries <= 100))),
  constraint worker_task_most_running_check CHECK (((most_running >= 1) AND (most_running <= 1000))),
  constraint worker_task_name_check CHECK ((name ~ '^[A-Za-z][A-Za-z0-9_.:-]{0,99}$'::text)),
  constraint worker_task_secrets_check CHECK ((cardinality(secrets) <= 50)),
  constraint worker_task_stall_check CHECK (((stall_seconds >= 1) AND (stall_seconds <= 86400))),
  constraint worker_task_timeout_check CHECK (((timeout_seconds >= 1) AND (timeout_seconds <= 86400)))
);

CREATE INDEX account_admin_idx ON public.account USING btree (id) WHERE ((role = 'admin'::text) AND is_active);

CREATE INDEX account_created_at_idx ON public.account USING btree (role, is_active, created_at, id) WHERE (deleted_at IS NULL);

CREATE INDEX account_deleted_idx ON public.account USING btree (id) WHERE (deleted_at IS NOT NULL);

CREATE INDEX account_deletion_at_idx ON public.account USING btree (deletion_at) WHERE (deletion_at IS NOT NULL);

CREATE INDEX account_email_idx ON public.account USING btree (role, is_active, email) WHERE (deleted_at IS NULL);

CREATE INDEX account_last_login_idx ON public.account USING btree (role, is_active, COALESCE(last_login, '1970-01-01 00:00:00+00'::timestamp with time zone), created_at, id) WHERE (deleted_at IS NULL);

CREATE INDEX account_words_idx ON public.account USING gin (words gin_trgm_ops);

CREATE INDEX account_export_account_id_idx ON public.account_export USING btree (account_id, id DESC);

CREATE INDEX account_export_created_at_idx ON public.account_export USING btree (created_at);

CREATE INDEX account_export_sha256_idx ON public.account_export USING btree (sha256);

CREATE INDEX account_quota_kind_idx ON public.account_quota USING btree (kind, quota) WHERE (quota > 0);

CREATE INDEX account_token_account_id_idx ON public.account_token USING btree (account_id, kind);

CREATE INDEX account_token_expires_at_idx ON public.account_token USING btree (expires_at);

CREATE INDEX account_totp_sealed_idx ON public.account_totp USING btree ("left"(secret, 8), id);

CREATE INDEX ai_budget_hold_account_id_idx ON public.ai_budget_hold USING btree (account_id) WHERE (account_id IS NOT NULL);

CREATE INDEX ai_budget_hold_key_id_idx ON public.ai_budget_hold USING btree (key_id) WHERE (key_id IS NOT NULL);

CREATE INDEX ai_conversation_owner_id_idx ON public.ai_conversation USING btree (owner_id, updated_at DESC, id DESC) WHERE (owner_id IS NOT NULL);

CREATE INDEX ai_conversation_unscored_idx ON public.ai_conversation USING btree (unscored_since) WHERE (unscored_since IS NOT NULL);

CREATE INDEX ai_conversation_user_id_idx ON public.ai_conversation USING btree (user_id, updated_at DESC, id DESC) WHERE (owner_id IS NULL);

CREATE INDEX ai_conversation_count_day_idx ON public.ai_conversation_count USING btree (day);

CREATE INDEX ai_key_sum_key_id_idx ON public.ai_key_sum USING btree (key_id, day) INCLUDE (tokens, cost, unpriced);

CREATE INDEX ai_message_conversation_id_idx ON public.ai_message USING btree (conversation_id, ordinal);

CREATE UNIQUE INDEX ai_message_job_id_key ON public.ai_message USING btree (job_id) WHERE (job_id IS NOT NULL);

CREATE INDEX ai_message_parent_id_idx ON public.ai_message USING btree (parent_id, ordinal) WHERE (parent_id IS NOT NULL);

CREATE INDEX ai_message_root_idx ON public.ai_message USING btree (conversation_id, ordinal) WHERE (parent_id IS NULL);

CREATE INDEX ai_sentiment_negative_idx ON public.ai_sentiment USING btree (scored_at DESC) WHERE (sentiment = ANY (ARRAY['negative'::text, 'frustrated'::text]));

CREATE INDEX ai_sentiment_owner_id_idx ON public.ai_sentiment USING btree (owner_id, scored_at DESC) WHERE (sentiment = ANY (ARRAY['negative'::text, 'frustrated'::text]));

CREATE INDEX ai_sentiment_sum_owner_id_idx ON public.ai_sentiment_sum USING btree (owner_id, sentiment, performance);

CREATE INDEX ai_text_conversation_id_idx ON public.ai_text USING btree (conversation_id, text_id DESC);

CREATE INDEX ai_text_search_idx ON public.ai_text USING gin (owned_vector(space, search));

CREATE INDEX ai_usage_created_at_idx ON public.ai_usage USING btree (created_at DESC, id DESC);

CREATE INDEX ai_usage_owner_id_idx ON public.ai_usage USING btree (owner_id) WHERE (owner_id IS NOT NULL);

CREATE INDEX ai_usage_user_id_idx ON public.ai_usage USING btree (user_id, created_at DESC, id DESC);

CREATE INDEX ai_usage_sum_user_id_idx ON public.ai_usage_sum USING btree (user_id, day, owner_id, vendor, model) INCLUDE (requests, successes, input_tokens, output_tokens, audio_seconds, unpriced, estimated, cost);

CREATE INDEX api_key_account_id_idx ON public.api_key USING btree (account_id, id DESC);

CREATE INDEX api_key_expires_at_idx ON public.api_key USING btree (expires_at) WHERE (expires_at IS NOT NULL);

CREATE INDEX api_key_organization_id_account_id_idx ON public.api_key USING btree (organization_id, account_id) WHERE (organization_id IS NOT NULL);

CREATE INDEX api_key_organization_listed_idx ON public.api_key USING btree (organization_id, id DESC) WHERE (organization_id IS NOT NULL);

CREATE INDEX audit_event_account_id_idx ON ONLY public.audit_event USING btree (account_id, at DESC, id DESC) WHERE (account_id IS DISTINCT FROM actor_id);

CREATE INDEX audit_event_account_id_kind_idx ON ONLY public.audit_event USING btree (account_id, kind, at DESC, id DESC) WHERE (account_id IS DISTINCT FROM actor_id);

CREATE INDEX audit_event_actor_id_idx ON ONLY public.audit_event USING btree (actor_id, at DESC, id DESC) WHERE (actor_id IS NOT NULL);

CREATE INDEX audit_event_actor_id_kind_idx ON ONLY public.audit_event USING btree (actor_id, kind, at DESC, id DESC) WHERE (actor_id IS NOT NULL);

CREATE INDEX audit_event_kind_idx ON ONLY public.audit_event USING btree (kind, at DESC, id DESC);

CREATE INDEX audit_event_organization_id_idx ON ONLY public.audit_event USING btree (organization_id, at DESC, id DESC) WHERE (organization_id IS NOT NULL);

CREATE INDEX audit_event_organization_id_kind_idx ON ONLY public.audit_event USING btree (organization_id, kind, at DESC, id DESC) WHERE (organization_id IS NOT NULL);

CREATE INDEX blob_unfinished_idx ON public.blob USING btree (created_at) WHERE (sha256 IS NULL);

CREATE INDEX blog_post_author_id_idx ON public.blog_post USING btree (author_id) WHERE (author_id IS NOT NULL);

CREATE INDEX blog_post_created_at_idx ON public.blog_post USING btree (created_at DESC, id DESC);

CREATE INDEX blog_post_published_idx ON public.blog_post USING btree (published_at DESC, id DESC) WHERE (status = 'published'::text);

CREATE INDEX blog_post_status_idx ON public.blog_post USING btree (status, created_at DESC, id DESC);

CREATE INDEX blog_post_unannounced_idx ON public.blog_post USING btree (published_at) WHERE ((status = 'published'::text) AND (announced_at IS NULL));

CREATE INDEX blog_post_count_status_idx ON public.blog_post_count USING btree (status);

CREATE INDEX blog_post_part_search_idx ON public.blog_post_part USING gin (owned_vector('-1'::integer, search));

CREATE INDEX blog_post_tag_created_at_idx ON public.blog_post_tag USING btree (tag_id, created_at DESC, post_id DESC);

CREATE INDEX blog_post_tag_published_idx ON public.blog_post_tag USING btree (tag_id, published_at DESC, post_id DESC) WHERE (status = 'published'::text);

CREATE INDEX blog_post_tag_status_idx ON public.blog_post_tag USING btree (tag_id, status, created_at DESC, post_id DESC);

CREATE INDEX blog_post_tag_tag_id_idx ON public.blog_post_tag USING btree (tag_id, post_id);

CREATE INDEX blog_preview_expires_at_idx ON public.blog_preview USING btree (expires_at);

CREATE INDEX blog_preview_post_id_idx ON public.blog_preview USING btree (post_id, id);

CREATE INDEX blog_redirect_post_id_idx ON public.blog_redirect USING btree (post_id);

CREATE INDEX blog_revision_editor_id_idx ON public.blog_revision USING btree (editor_id, id) WHERE (editor_id IS NOT NULL);

CREATE INDEX blog_revision_post_id_idx ON public.blog_revision USING btree (post_id, id DESC);

CREATE INDEX blog_tag_applied_to_idx ON public.blog_tag USING btree (id) WHERE (applied_to IS NOT NULL);

CREATE INDEX blog_tag_listed_idx ON public.blog_tag USING btree (lower(name), name);

CREATE INDEX blog_upload_created_at_idx ON public.blog_upload USING btree (created_at);

CREATE INDEX comms_send_channel_idx ON public.comms_send USING btree (channel, created_at DESC, id DESC);

CREATE INDEX comms_send_open_idx ON public.comms_send USING btree (job_id) WHERE (status = ANY (ARRAY['scheduled'::text, 'queued'::text, 'sending'::text, 'failed'::text]));

CREATE INDEX comms_send_owner_id_idx ON public.comms_send USING btree (owner_id, channel, created_at DESC, id DESC) WHERE (owner_id IS NOT NULL);

CREATE INDEX comms_send_owner_id_status_idx ON public.comms_send USING btree (owner_id, status, channel, created_at DESC, id DESC) WHERE (owner_id IS NOT NULL);

CREATE UNIQUE INDEX comms_send_provider_id_key ON public.comms_send USING btree (channel, provider_id) WHERE (provider_id IS NOT NULL);

CREATE INDEX comms_send_recipient_idx ON public.comms_send USING btree (channel, (recipients[1]), requested_at) WHERE (provider_id IS NOT NULL);

CREATE INDEX comms_send_settled_at_idx ON public.comms_send USING btree (settled_at);

CREATE INDEX comms_send_status_idx ON public.comms_send USING btree (status, channel, created_at DESC, id DESC);

CREATE INDEX comms_send_unowned_idx ON public.comms_send USING btree (channel, created_at DESC, id DESC) WHERE ((owner_id IS NULL) AND (purpose = 'caller'::text));

CREATE INDEX comms_send_unowned_status_idx ON public.comms_send USING btree (status, channel, created_at DESC, id DESC) WHERE ((owner_id IS NULL) AND (purpose = 'caller'::text));

CREATE INDEX comms_send_count_day_idx ON public.comms_send_count USING btree (day, channel, outcome);

CREATE INDEX comms_suppression_created_at_idx ON public.comms_suppression USING btree (stream, created_at DESC, address DESC);

CREATE INDEX document_attached_to_id_idx ON public.document USING btree (attached_to_id) WHERE (attached_to_id IS NOT NULL);

CREATE INDEX document_byte_size_idx ON public.document USING btree (owner_id, byte_size, id) WHERE (deleted_at IS NULL);

CREATE INDEX document_collected_idx ON public.document USING btree (deleted_at) WHERE (pruned_at IS NOT NULL);

CREATE INDEX document_day_idx ON public.document USING btree (owner_id, day, id) INCLUDE (superseded_by_id) WHERE (deleted_at IS NULL);

CREATE INDEX document_expires_at_idx ON public.document USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (pruned_at IS NULL));

CREATE INDEX document_kind_idx ON public.document USING btree (owner_id, kind, id DESC) WHERE ((deleted_at IS NULL) AND (superseded_by_id IS NULL));

CREATE INDEX document_listed_idx ON public.document USING btree (owner_id, id DESC) WHERE ((deleted_at IS NULL) AND (superseded_by_id IS NULL));

CREATE INDEX document_owner_id_deleted_at_idx ON public.document USING btree (owner_id, deleted_at DESC, id DESC) INCLUDE (expires_at) WHERE ((expires_at IS NOT NULL) AND (pruned_at IS NULL));

CREATE INDEX document_owner_id_idx ON public.document USING btree (owner_id, id DESC) INCLUDE (deleted_at);

CREATE UNIQUE INDEX document_owner_id_sha256_key ON public.document USING btree (owner_id, sha256) NULLS NOT DISTINCT WHERE (deleted_at IS NULL);

CREATE INDEX document_page_count_idx ON public.document USING btree (owner_id, COALESCE(page_count, 0), id) WHERE (deleted_at IS NULL);

CREATE INDEX document_sealed_idx ON public.document USING btree ("left"(sealed_password, 8), id) WHERE (sealed_password IS NOT NULL);

CREATE INDEX document_search_idx ON public.document USING gin (owned_vector(owner_id, search)) WHERE (deleted_at IS NULL);

CREATE INDEX document_sha256_idx ON public.document USING btree (sha256);

CREATE INDEX document_supersedes_id_idx ON public.document USING btree (supersedes_id) WHERE (supersedes_id IS NOT NULL);

CREATE UNIQUE INDEX document_supersedes_id_key ON public.document USING btree (supersedes_id) WHERE (deleted_at IS NULL);

CREATE INDEX document_title_idx ON public.document USING btree (owner_id, lower(title), id) WHERE (deleted_at IS NULL);

CREATE INDEX document_page_search_idx ON public.document_page USING gin (owned_vector(owner_id, search));

CREATE INDEX document_page_part_search_idx ON public.document_page_part USING gin (owned_vector(owner_id, search));

CREATE INDEX document_sum_owner_id_idx ON public.document_sum USING btree (owner_id);

CREATE INDEX document_tag_byte_size_idx ON public.document_tag USING btree (owner_id, label, byte_size, document_id) INCLUDE (kind, superseded);

CREATE INDEX document_tag_day_idx ON public.document_tag USING btree (owner_id, label, day, document_id) INCLUDE (kind, superseded);

CREATE INDEX document_tag_owner_id_idx ON public.document_tag USING btree (owner_id, label, document_id) INCLUDE (kind, superseded);

CREATE INDEX document_tag_page_count_idx ON public.document_tag USING btree (owner_id, label, page_count, document_id) INCLUDE (kind, superseded);

CREATE INDEX document_tag_title_idx ON public.document_tag USING btree (owner_id, label, title, document_id) INCLUDE (kind, superseded);

CREATE INDEX document_tag_count_owner_id_idx ON public.document_tag_count USING btree (owner_id, label) INCLUDE (documents, superseded);

CREATE INDEX email_change_expires_at_idx ON public.email_change USING btree (expires_at);

CREATE INDEX idempotency_key_created_at_idx ON public.idempotency_key USING btree (created_at);

CREATE INDEX idempotency_key_job_id_idx ON public.idempotency_key USING btree (job_id) WHERE (status IS NULL);

CREATE UNIQUE INDEX job_actor_running_key ON public.job USING btree (mailbox) WHERE ((status = 'running'::text) AND (mailbox_limit = 1));

CREATE INDEX job_batch_idx ON public.job USING btree (batch_id, ordinal) WHERE (batch_id IS NOT NULL);

CREATE INDEX job_created_at_idx ON public.job USING btree (created_at, ordinal);

CREATE INDEX job_finished_at_idx ON public.job USING btree (finished_at) WHERE ((finished_at IS NOT NULL) AND (status <> 'failed'::text));

CREATE INDEX job_key_idx ON public.job USING btree (owner_id, key, ordinal) WHERE (key IS NOT NULL);

CREATE INDEX job_mailbox_idx ON public.job USING btree (mailbox, status, ordinal) WHERE (status = ANY (ARRAY['waiting'::text, 'scheduled'::text, 'available'::text]));

CREATE INDEX job_mailbox_running_idx ON public.job USING btree (mailbox) WHERE ((lease_id IS NOT NULL) AND (mailbox_limit IS NOT NULL));

CREATE INDEX job_owner_id_idx ON public.job USING btree (owner_id, status, finished_at, ordinal) WHERE (owner_id IS NOT NULL);

CREATE INDEX job_ownerless_idx ON public.job USING btree (status, finished_at, ordinal) WHERE ((owner_id IS NULL) AND (queue <> ALL (ARRAY['accounts'::text, 'payments'::text, 'schedules'::text, 'webhooks'::text])));

CREATE INDEX job_queued_idx ON public.job USING btree (queue, status, ordinal) WHERE ((status = ANY (ARRAY['waiting'::text, 'scheduled'::text, 'available'::text])) AND (finished_at IS NULL));

CREATE UNIQUE INDEX job_retry_of_key ON public.job USING btree (retry_of) WHERE (retry_of IS NOT NULL);

CREATE INDEX job_retrying_idx ON public.job USING btree (mailbox, ordinal) WHERE ((status = 'scheduled'::text) AND (attempt > 0));

CREATE INDEX job_running_idx ON public.job USING btree (lease_id) WHERE (status = 'running'::text);

CREATE INDEX job_scheduled_idx ON public.job USING btree (run_at, ordinal) WHERE (status = 'scheduled'::text);

CREATE INDEX job_sealed_idx ON public.job USING btree ("left"((payload ->> 'sealedPassword'::text), 8), id) WHERE ((name = 'documents.extract'::text) AND (payload ? 'sealedPassword'::text));

CREATE INDEX job_suspect_idx ON public.job USING btree (lease_id) WHERE ((status = 'running'::text) AND (interruptions >= 2));

CREATE INDEX job_unsuccessful_idx ON public.job USING btree (status, finished_at, ordinal) WHERE (status = ANY (ARRAY['failed'::text, 'cancelled'::text]));

CREATE INDEX job_callback_api_key_id_idx ON public.job_callback USING btree (api_key_id) WHERE (api_key_id IS NOT NULL);

CREATE INDEX job_callback_endpoint_id_idx ON public.job_callback USING btree (endpoint_id);

CREATE INDEX job_count_queue_idx ON public.job_count USING btree (queue, id);

CREATE INDEX job_dependency_job_id_idx ON public.job_dependency USING btree (job_id);

CREATE INDEX job_event_row_attempt_idx ON public.job_event_row USING btree (job_id, attempt) WHERE (attempt IS NOT NULL);

CREATE UNIQUE INDEX job_log_n_key ON public.job_log USING btree (job_id, attempt, n) WHERE (n IS NOT NULL);

CREATE INDEX llm_current_chosen_by_idx ON public.llm_current USING btree (chosen_by);

CREATE INDEX llm_model_enabled_idx ON public.llm_model USING btree (vendor) WHERE (NOT disabled);

CREATE INDEX llm_model_listed_idx ON public.llm_model USING btree (COALESCE(('2100-01-01'::date - released_on), 1000000), vendor, model_id);

CREATE INDEX login_failure_failed_at_idx ON public.login_failure USING btree (failed_at);

CREATE INDEX oidc_login_expires_at_idx ON public.oidc_login USING btree (expires_at);

CREATE INDEX organization_created_by_idx ON public.organization USING btree (created_by) WHERE (created_by IS NOT NULL);

CREATE INDEX organization_deleted_idx ON public.organization USING btree (id) WHERE (deleted_at IS NOT NULL);

CREATE INDEX organization_listed_idx ON public.organization USING btree (id) WHERE (deleted_at IS NULL);

CREATE INDEX organization_invite_email_idx ON public.organization_invite USING btree (email) WHERE (status = 'pending'::text);

CREATE INDEX organization_invite_expires_at_idx ON public.organization_invite USING btree (expires_at);

CREATE INDEX organization_invite_invited_by_idx ON public.organization_invite USING btree (invited_by) WHERE (invited_by IS NOT NULL);

CREATE INDEX organization_invite_listed_idx ON public.organization_invite USING btree (organization_id, id, expires_at) WHERE (status = 'pending'::text);

CREATE INDEX organization_invite_organization_id_idx ON public.organization_invite USING btree (organization_id);

CREATE UNIQUE INDEX organization_invite_pending_key ON public.organization_invite USING btree (organization_id, email) WHERE (status = 'pending'::text);

CREATE INDEX organization_member_organization_id_idx ON public.organization_member USING btree (organization_id, id, user_id);

CREATE INDEX organization_member_owner_idx ON public.organization_member USING btree (organization_id) WHERE (role = 'owner'::text);

CREATE INDEX organization_member_user_id_idx ON public.organization_member USING btree (user_id, organization_id);

CREATE INDEX passkey_account_id_idx ON public.passkey USING btree (account_id, id DESC);

CREATE INDEX passkey_challenge_expires_at_idx ON public.passkey_challenge USING btree (expires_at);

CREATE INDEX payment_customer_same_as_idx ON public.payment_customer USING btree (replaced_by) WHERE (replaced_by IS NOT NULL);

CREATE INDEX payment_dispute_customer_id_idx ON public.payment_dispute USING btree (customer_id, id DESC) WHERE (customer_id IS NOT NULL);

CREATE INDEX payment_dispute_customer_id_status_idx ON public.payment_dispute USING btree (customer_id, status, id DESC) WHERE (customer_id IS NOT NULL);

CREATE INDEX payment_dispute_provider_charge_id_idx ON public.payment_dispute USING btree (provider_charge_id);

CREATE INDEX payment_dispute_provider_payment_intent_id_idx ON public.payment_dispute USING btree (provider_payment_intent_id);

CREATE INDEX payment_dispute_status_idx ON public.payment_dispute USING btree (status, id DESC);

CREATE INDEX payment_dispute_transaction_id_idx ON public.payment_dispute USING btree (transaction_id);

CREATE INDEX payment_event_pending_idx ON public.payment_event USING btree (received_at) WHERE (applied_at IS NULL);

CREATE INDEX payment_event_received_at_idx ON public.payment_event USING btree (received_at);

CREATE INDEX payment_reference_transaction_id_idx ON public.payment_reference USING btree (transaction_id);

CREATE INDEX payment_subscription_customer_id_idx ON public.payment_subscription USING btree (customer_id, id DESC);

CREATE INDEX payment_subscription_customer_id_status_idx ON public.payment_subscription USING btree (customer_id, status, id DESC);

CREATE INDEX payment_subscription_status_idx ON public.payment_subscription USING btree (status, id DESC);

CREATE INDEX payment_subscription_count_customer_id_idx ON public.payment_subscription_count USING btree (customer_id);

CREATE INDEX payment_sum_customer_id_idx ON public.payment_sum USING btree (customer_id, currency, day) INCLUDE (transactions, payments, revenue);

CREATE INDEX payment_transaction_amount_idx ON public.payment_transaction USING btree (status, amount, id) WHERE shown;

CREATE INDEX payment_transaction_charge_id_idx ON public.payment_transaction USING btree (charge_id) WHERE (charge_id IS NOT NULL);

CREATE INDEX payment_transaction_created_at_idx ON public.payment_transaction USING btree (created_at DESC, id DESC) WHERE shown;

CREATE INDEX payment_transaction_customer_id_amount_idx ON public.payment_transaction USING btree (customer_id, status, amount, id) WHERE shown;

CREATE INDEX payment_transaction_customer_id_idx ON public.payment_transaction USING btree (customer_id, shown, created_at DESC, id DESC);

CREATE INDEX payment_transaction_customer_id_status_idx ON public.payment_transaction USING btree (customer_id, status, created_at DESC, id DESC) WHERE shown;

CREATE INDEX payment_transaction_pending_refund_idx ON public.payment_transaction USING btree (looked_up_at NULLS FIRST, id) WHERE ((charge_id IS NOT NULL) AND (status = 'pending'::text));

CREATE INDEX payment_transaction_reserved_idx ON public.payment_transaction USING btree (id) WHERE ((charge_id IS NOT NULL) AND (NOT shown));

CREATE INDEX payment_transaction_status_idx ON public.payment_transaction USING btree (status, created_at DESC, id DESC) WHERE shown;

CREATE INDEX payment_transaction_unlinked_idx ON public.payment_transaction USING btree (customer_id, id) WHERE unlinked;

CREATE INDEX queue_control_paused_by_idx ON public.queue_control USING btree (paused_by) WHERE (paused_by IS NOT NULL);

CREATE INDEX rag_collection_deleted_idx ON public.rag_collection USING btree (id) WHERE (deleted_at IS NOT NULL);

CREATE INDEX rag_collection_files_idx ON public.rag_collection USING btree (name) WHERE ((selection IS NULL) AND (deleted_at IS NULL));

CREATE UNIQUE INDEX rag_collection_name_key ON public.rag_collection USING btree (name) WHERE (deleted_at IS NULL);

CREATE INDEX rag_collection_owner_id_idx ON public.rag_collection USING btree (owner_id, name);

CREATE UNIQUE INDEX rag_file_build_key ON public.rag_file USING btree (collection_id, source) WHERE (build_id IS NOT NULL);

CREATE INDEX rag_file_collection_id_idx ON public.rag_file USING btree (collection_id);

CREATE UNIQUE INDEX rag_file_source_key ON public.rag_file USING btree (collection_id, source) WHERE (build_id IS NULL);

CREATE INDEX refresh_token_expires_at_idx ON public.refresh_token USING btree (expires_at);

CREATE UNIQUE INDEX refresh_token_session_id_current_key ON public.refresh_token USING btree (session_id) WHERE (rotated_at IS NULL);

CREATE INDEX refresh_token_session_id_idx ON public.refresh_token USING btree (session_id);

CREATE INDEX request_limit_expires_at_idx ON public.request_limit USING btree (expires_at);

CREATE INDEX schedule_created_at_idx ON public.schedule USING btree (created_at, id);

CREATE INDEX schedule_next_at_idx ON public.schedule USING btree (next_at) WHERE (next_at IS NOT NULL);

CREATE INDEX schedule_owner_id_idx ON public.schedule USING btree (owner_id, created_at, id) WHERE (owner_id IS NOT NULL);

CREATE INDEX schedule_paused_by_idx ON public.schedule USING btree (paused_by) WHERE (paused_by IS NOT NULL);

CREATE UNIQUE INDEX search_pass_single_key ON public.search_pass USING btree ((true));

CREATE INDEX search_word_seen_at_idx ON public.search_word USING btree (seen_at);

CREATE INDEX search_word_trigram_idx ON public.search_word USING gin (owner_id, word gin_trgm_ops);

CREATE INDEX session_account_id_idx ON public.session USING btree (account_id, ended_at);

CREATE INDEX session_listed_idx ON public.session USING btree (account_id, id DESC) WHERE (revoked_at IS NULL);

CREATE INDEX start_rate_next_at_idx ON public.start_rate USING btree (next_at);

CREATE INDEX voice_preview_owner_id_idx ON public.voice_preview USING btree (owner_id, job_id) INCLUDE (characters) WHERE (owner_id IS NOT NULL);

CREATE INDEX voice_preview_used_at_idx ON public.voice_preview USING btree (used_at);

CREATE INDEX voice_settings_updated_by_idx ON public.voice_settings USING btree (updated_by);

CREATE INDEX voice_transcription_created_at_idx ON public.voice_transcription USING btree (created_at DESC, id DESC);

CREATE INDEX voice_transcription_owner_id_idx ON public.voice_transcription USING btree (owner_id, created_at DESC, id DESC);

CREATE INDEX webhook_delivery_created_at_idx ON public.webhook_delivery USING btree (created_at);

CREATE INDEX webhook_delivery_due_idx ON public.webhook_delivery USING btree (endpoint_id, host, due_at, id) WHERE (due_at IS NOT NULL);

CREATE INDEX webhook_delivery_endpoint_id_idx ON public.webhook_delivery USING btree (endpoint_id, id DESC);

CREATE INDEX webhook_delivery_endpoint_id_status_idx ON public.webhook_delivery USING btree (endpoint_id, status, id DESC);

CREATE INDEX webhook_endpoint_account_id_idx ON public.webhook_endpoint USING btree (account_id, id DESC);

CREATE INDEX webhook_endpoint_api_key_id_idx ON public.webhook_endpoint USING btree (api_key_id) WHERE (api_key_id IS NOT NULL);

CREATE UNIQUE INDEX webhook_endpoint_callbacks_key ON public.webhook_endpoint USING btree (account_id) WHERE ((url IS NULL) AND (deleted_at IS NULL));

CREATE INDEX webhook_endpoint_deleted_idx ON public.webhook_endpoint USING btree (id) WHERE (deleted_at IS NOT NULL);

CREATE INDEX webhook_endpoint_expires_at_idx ON public.webhook_endpoint USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (deleted_at IS NULL));

CREATE INDEX webhook_endpoint_organization_id_idx ON public.webhook_endpoint USING btree (organization_id, id DESC) WHERE (organization_id IS NOT NULL);

CREATE INDEX webhook_endpoint_previous_sealed_idx ON public.webhook_endpoint USING btree ("left"(previous_secret, 8), id) WHERE (previous_secret IS NOT NULL);

CREATE INDEX webhook_endpoint_sealed_idx ON public.webhook_endpoint USING btree ("left"(secret, 8), id);

CREATE INDEX webhook_endpoint_service_idx ON public.webhook_endpoint USING btree (id DESC) WHERE (account_id IS NULL);

CREATE INDEX webhook_pending_sum_account_id_idx ON public.webhook_pending_sum USING btree (account_id);

CREATE INDEX webhook_rate_expires_at_idx ON public.webhook_rate USING btree (expires_at);

CREATE INDEX worker_delivery_queue_idx ON public.worker_delivery USING btree (queue, priority, id);

CREATE INDEX worker_lease_queue_idx ON public.worker_lease USING btree (queue) WHERE (queue IS NOT NULL);

CREATE INDEX worker_queue_account_id_idx ON public.worker_queue USING btree (account_id, name) WHERE (account_id IS NOT NULL);

CREATE INDEX worker_queue_created_by_idx ON public.worker_queue USING btree (created_by) WHERE (created_by IS NOT NULL);

CREATE INDEX worker_queue_organization_id_idx ON public.worker_queue USING btree (organization_id, name) WHERE (organization_id IS NOT NULL);

CREATE INDEX worker_queue_sealed_idx ON public.worker_queue USING btree ("left"(endpoint_secret, 8), name) WHERE (endpoint_secret IS NOT NULL);

CREATE STATISTICS public.comms_send_status_channel (mcv) ON channel, status FROM comms_send;

create view job_event as
 SELECT job.id AS job_id,
    1 AS seq,
    'status'::text AS kind,
    '{"label": "", "total": null, "status": "running", "current": null}'::jsonb AS data,
    job.started_at AS created_at
   FROM job
  WHERE ((job.attempt > 0) AND (NOT (EXISTS ( SELECT
           FROM job_event_row e
          WHERE ((e.job_id = job.id) AND (e.seq = 1))))))
UNION ALL
 SELECT job_event_row.job_id,
    job_event_row.seq,
    job_event_row.kind,
    job_event_row.data,
    job_event_row.created_at
   FROM job_event_row
UNION ALL
 SELECT job.id AS job_id,
    job.seq,
    'status'::text AS kind,
    jsonb_build_object('status', job.status, 'label', job.label, 'current', job.progress_current, 'total', job.progress_total) AS data,
    job.finished_at AS created_at
   FROM job
  WHERE (job.finished_at IS NOT NULL);

CREATE OR REPLACE FUNCTION public.account_deactivate(id integer, for_deletion boolean)
 RETURNS TABLE(profile text, inherited json, invites json)
 LANGUAGE plpgsql
AS $function$8be27aa4b5458c0e20787be5cb77f8e5$function$;

CREATE OR REPLACE FUNCTION public.account_delete(id integer, max_organizations integer)
 RETURNS TABLE(email text, inherited json, deleted json, invites json)
 LANGUAGE plpgsql
AS $function$5c86a747dda1e78306961ba193252e38$function$;

CREATE OR REPLACE FUNCTION public.account_json(a account)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (a).id, 'email', (a).email, 'full_name', (a).full_name, 'is_active', (a).is_active, 'is_verified', (a).is_verified, 'role', (a).role, 'last_login', iso((a).last_login), 'created_at', iso((a).created_at), 'updated_at', iso((a).updated_at), 'deletion_at', iso((a).deletion_at));

CREATE OR REPLACE FUNCTION public.account_last_admin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$54ba4382a5c8ba1a8648e5b0b60dfee9$function$;

CREATE OR REPLACE FUNCTION public.account_leave(id integer, max_organizations integer)
 RETURNS TABLE(organizations integer, inherited json, deleted json, invites json)
 LANGUAGE plpgsql
AS $function$78bc36ed8c8ad9247cc159328beef13f$function$;

CREATE OR REPLACE FUNCTION public.ai_branch_activate(conversation uuid, leaf uuid)
 RETURNS void
 LANGUAGE sql
AS $function$870a0ee0decad0aa370634da3b8d1481$function$;

CREATE OR REPLACE FUNCTION public.ai_branch_leaf(message uuid)
 RETURNS uuid
 LANGUAGE sql
 STABLE
AS $function$5231d416d5c5199361390d09d04a60d0$function$;

CREATE OR REPLACE FUNCTION public.ai_budget_lock(account integer, key uuid, defaults numeric[])
 RETURNS TABLE(holder text, kind text, amount numeric, used numeric, reserved numeric, resets_at timestamp with time zone, exceeded boolean)
 LANGUAGE plpgsql
AS $function$233b5ed271ae92b16e1f43ccd57c6ab9$function$;

CREATE OR REPLACE FUNCTION public.ai_budget_state(account integer, key uuid, defaults numeric[])
 RETURNS TABLE(holder text, kind text, amount numeric, own numeric, used numeric, reserved numeric, unpriced bigint, resets_at timestamp with time zone)
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
AS $function$c63e61ae47ac5f4010b23f124598603b$function$;

CREATE OR REPLACE FUNCTION public.ai_conversation_count_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$065b848b91b02ec2d79ed66c246a5c8c$function$;

CREATE OR REPLACE FUNCTION public.ai_conversation_count_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$d3cb65dfdef94c2cb766627985f31b59$function$;

CREATE OR REPLACE FUNCTION public.ai_conversation_count_of(c ai_conversation)
 RETURNS SETOF ai_conversation_count
 LANGUAGE sql
 IMMUTABLE
AS $function$4318ac2e1030e1d6497f9285696ce9a2$function$;

CREATE OR REPLACE FUNCTION public.ai_conversation_json(c ai_conversation)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (c).id, 'title', (c).title, 'message_count', (c).message_count, 'last_activity', iso((c).updated_at), 'provider', (c).provider, 'model', (c).model);

CREATE OR REPLACE FUNCTION public.ai_key_sum_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$050ab60f71b1fe31ce976a2337e2b4bd$function$;

CREATE OR REPLACE FUNCTION public.ai_key_sum_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$821ba1d26290def4d1d95921dbef7197$function$;

CREATE OR REPLACE FUNCTION public.ai_key_sum_of(u ai_usage)
 RETURNS SETOF ai_key_sum
 LANGUAGE sql
 IMMUTABLE
AS $function$1181f1bc3ddfa3f3a362c45644e8fdfa$function$;

CREATE OR REPLACE FUNCTION public.ai_key_sum_update()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$858ae83cad9ac4e8f34ce2f4ef418ca6$function$;

CREATE OR REPLACE FUNCTION public.ai_messages_count()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$0ee170ffe57d29d4d1289845d951fc1b$function$;

CREATE OR REPLACE FUNCTION public.ai_messages_index()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$6ae7ea10c882be1334da39d29683bfe1$function$;

CREATE OR REPLACE FUNCTION public.ai_messages_reindex()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$1e725a75135b5c976abe0e905224eb51$function$;

CREATE OR REPLACE FUNCTION public.ai_search_space(owner_id integer, user_id text)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (owner_id IS NOT NULL) THEN ('-1'::integer - owner_id) ELSE ('-1073741825'::integer - (((('x'::text || "left"(md5(user_id), 8)))::bit(32))::integer & 1073741823)) END;

CREATE OR REPLACE FUNCTION public.ai_sentiment_sum_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$fa8ff737ebb337c6993a2bd4d10a1c5b$function$;

CREATE OR REPLACE FUNCTION public.ai_sentiment_sum_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$bad99f7b612f993c8b3248f53a7bdca9$function$;

CREATE OR REPLACE FUNCTION public.ai_sentiment_sum_of(s ai_sentiment)
 RETURNS SETOF ai_sentiment_sum
 LANGUAGE sql
 IMMUTABLE
AS $function$94019383d769f319b6d6713676efc084$function$;

CREATE OR REPLACE FUNCTION public.ai_sentiment_sum_update()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$46191f384f9428144ef1135428e8155c$function$;

CREATE OR REPLACE FUNCTION public.ai_text_store(ids uuid[], conversations uuid[], contents text[])
 RETURNS void
 LANGUAGE sql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$8e8a258be1d89619f59dc453e3998fc8$function$;

CREATE OR REPLACE FUNCTION public.ai_titles_index()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$4cc756232a08b8491272299d9b632b77$function$;

CREATE OR REPLACE FUNCTION public.ai_turn_settle(ended job)
 RETURNS void
 LANGUAGE plpgsql
AS $function$01b8a452240e635e2a1f4fbc554df419$function$;

CREATE OR REPLACE FUNCTION public.ai_turn_text(job_id uuid)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$a45d8396a6a1e5f6f4845bb6c37646ab$function$;

CREATE OR REPLACE FUNCTION public.ai_usage_sum_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$ee176e7fba4767b892a176d367ee3eba$function$;

CREATE OR REPLACE FUNCTION public.ai_usage_sum_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$9c97211376a44d2d91583623c88e1623$function$;

CREATE OR REPLACE FUNCTION public.ai_usage_sum_of(u ai_usage)
 RETURNS SETOF ai_usage_sum
 LANGUAGE sql
 IMMUTABLE
AS $function$859153cae1b7878be2edc0df0a305a8a$function$;

CREATE OR REPLACE FUNCTION public.ai_usage_sum_update()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$0ae78523b0ae4b435eb6778d172c527d$function$;

CREATE OR REPLACE FUNCTION public.api_key_cleanup()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$1c3822cb65cc1aa8eedb5ebf72d0cefb$function$;

CREATE OR REPLACE FUNCTION public.api_key_json(k api_key)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (k).id, 'account_id', (k).account_id, 'organization_id', (k).organization_id, 'name', (k).name, 'hint', (k).hint, 'scopes', (k).scopes, 'created_at', iso((k).created_at), 'expires_at', iso((k).expires_at), 'last_used_at', iso((k).last_used_at), 'budget', (SELECT json_build_object('day_tokens', max(b.amount) FILTER (WHERE (b.kind = 'day_tokens'::text)), 'day_cost', max(b.amount) FILTER (WHERE (b.kind = 'day_cost'::text)), 'month_tokens', max(b.amount) FILTER (WHERE (b.kind = 'month_tokens'::text)), 'month_cost', max(b.amount) FILTER (WHERE (b.kind = 'month_cost'::text))) AS json_build_object FROM ai_budget b WHERE (b.key_id = (api_key_json.k).id)));

CREATE OR REPLACE FUNCTION public.array_sum(one bigint[], other bigint[])
 RETURNS bigint[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$538fe59dd4935060b74bcb8fb0723b92$function$;

CREATE OR REPLACE FUNCTION public.audit_append_only()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$1466365e967d67807683af7c9ea470a5$function$;

CREATE OR REPLACE FUNCTION public.blog_announce(posts bigint[])
 RETURNS integer
 LANGUAGE sql
AS $function$9fe3aa447a82766d3a064b3cfcee4ac7$function$;

CREATE OR REPLACE FUNCTION public.blog_archive(post bigint)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$a5905c86e1d73514a0afaeaf79258928$function$;

CREATE OR REPLACE FUNCTION public.blog_free_name(slug text)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$cab89f23e8301a28c37cba426f2bb338$function$;

CREATE OR REPLACE FUNCTION public.blog_post_count_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$c34eec78d38104835d3e12bfcb3531bd$function$;

CREATE OR REPLACE FUNCTION public.blog_post_count_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$67d3b35b75fc6219f4702ca93789a2b0$function$;

CREATE OR REPLACE FUNCTION public.blog_post_count_of(p blog_post)
 RETURNS SETOF blog_post_count
 LANGUAGE sql
 IMMUTABLE
AS $function$16962213292323cec38731f7cb469d5b$function$;

CREATE OR REPLACE FUNCTION public.blog_post_count_update()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$38bbb0f3f08d0d44016574a022e1bf5c$function$;

CREATE OR REPLACE FUNCTION public.blog_post_fields(id bigint, title text, slug text, excerpt text, content text, status text, author_id integer, author_name text, created_at timestamp with time zone, updated_at timestamp with time zone, published_at timestamp with time zone, seo_title text, seo_description text, hero_image_url text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (SELECT "left"((row_to_json(post.*))::text, '-1'::integer) AS "left" FROM (SELECT blog_post_fields.id AS id, blog_post_fields.title AS title, blog_post_fields.slug AS slug, blog_post_fields.excerpt AS excerpt, blog_post_fields.content AS content, blog_post_fields.status AS status, blog_post_fields.author_id AS author_id, blog_post_fields.author_name AS author_name, iso(blog_post_fields.created_at) AS created_at, iso(blog_post_fields.updated_at) AS updated_at, iso(blog_post_fields.published_at) AS published_at, blog_post_fields.seo_title AS seo_title, blog_post_fields.seo_description AS seo_description, blog_post_fields.hero_image_url AS hero_image_url) post);

CREATE OR REPLACE FUNCTION public.blog_post_index()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$9e3d371444c947a30e85ece2c5be82db$function$;

CREATE OR REPLACE FUNCTION public.blog_post_tag_set_order()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$65cae862ea1bd673c9a9fb4a48bf3507$function$;

CREATE OR REPLACE FUNCTION public.blog_post_tags_refresh()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ded529bb50605967327fef99f4e2a98a$function$;

CREATE OR REPLACE FUNCTION public.blog_post_tags_update_order()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$b031ae7d9b6c2e2a4a379f4720e7fb5c$function$;

CREATE OR REPLACE FUNCTION public.blog_publish(post bigint, at timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
AS $function$5130c28a1626140b323f049abbb047fd$function$;

CREATE OR REPLACE FUNCTION public.blog_redirect_end()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$0bcf61a4bc3403e679f3841117565633$function$;

CREATE OR REPLACE FUNCTION public.blog_redirect_keep()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$97b519a4163261e65247defadb2de102$function$;

CREATE OR REPLACE FUNCTION public.blog_revision_json(r blog_revision)
 RETURNS json
 LANGUAGE sql
 STABLE
AS $function$4b2b59832e2954c7c87d5a61df11872c$function$;

CREATE OR REPLACE FUNCTION public.blog_revision_keep(changes jsonb, editor integer, editor_name text, reason text, max_revisions integer)
 RETURNS void
 LANGUAGE sql
AS $function$0b1f55d611878c13ae801a83afc396ac$function$;

CREATE OR REPLACE FUNCTION public.blog_tag_apply(tag bigint, max_posts integer)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$7f67a029cb261ebc0f6aaed6404554ac$function$;

CREATE OR REPLACE FUNCTION public.blog_tag_json(t blog_tag)
 RETURNS json
 LANGUAGE sql
 STABLE
AS $function$52b2fc770a2d22bb4ec2f3855aca68b5$function$;

CREATE OR REPLACE FUNCTION public.blog_tags_rebuild(posts bigint[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$a00b408beeb84f80b682c2710a194960$function$;

CREATE OR REPLACE FUNCTION public.comms_deliveries_merge(deliveries jsonb, outcomes jsonb)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
RETURN (SELECT COALESCE(jsonb_agg((d.value || COALESCE((comms_deliveries_merge.outcomes -> (d.value ->> 'address'::text)), '{}'::jsonb)) ORDER BY d.ordinality), '[]'::jsonb) AS "coalesce" FROM jsonb_array_elements(comms_deliveries_merge.deliveries) WITH ORDINALITY d(value, ordinality));

CREATE OR REPLACE FUNCTION public.comms_events_apply(events jsonb)
 RETURNS integer
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$5c77fc96a51bda0f0041b72a404f3ba0$function$;

CREATE OR REPLACE FUNCTION public.comms_events_match(events jsonb)
 RETURNS TABLE(send uuid, provider_id text, status text, provider_status text, error_code text, detail text, event_id text, suppresses text)
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$0b159bc444493f881b93d5a807f99222$function$;

CREATE OR REPLACE FUNCTION public.comms_rank(status text, provider_id text)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (provider_id IS NULL) THEN 0 ELSE COALESCE(array_position(ARRAY['sent'::text, 'delivered'::text, 'failed'::text, 'bounced'::text, 'complained'::text], status), 0) END;

CREATE OR REPLACE FUNCTION public.comms_recipients_json(s comms_send)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN (SELECT COALESCE(json_agg(json_build_object('address', (d.value ->> 'address'::text), 'status', COALESCE((d.value ->> 'status'::text), CASE WHEN (((comms_recipients_json.s).provider_id IS NOT NULL) AND (jsonb_array_length((comms_recipients_json.s).deliveries) > 1)) THEN 'sent'::text ELSE (comms_recipients_json.s).status END), 'detail', COALESCE((d.value ->> 'detail'::text), CASE WHEN (jsonb_array_length((comms_recipients_json.s).deliveries) = 1) THEN (comms_recipients_json.s).detail ELSE NULL::text END)) ORDER BY d.ordinality), '[]'::json) AS "coalesce" FROM jsonb_array_elements((comms_recipients_json.s).deliveries) WITH ORDINALITY d(value, ordinality));

CREATE OR REPLACE FUNCTION public.comms_send_cancel(send_id uuid)
 RETURNS TABLE(status text, job_id uuid)
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$9cf6b3bdd1bae9f86b541476f2926569$function$;

CREATE OR REPLACE FUNCTION public.comms_send_close(ids uuid[], outcome text, code text, reason text, outcomes jsonb DEFAULT '{}'::jsonb)
 RETURNS void
 LANGUAGE sql
AS $function$fe125c4a589e92840d97388869df533b$function$;

CREATE OR REPLACE FUNCTION public.comms_send_count_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$b62b99e3fe86191c0c63045b059f44b8$function$;

CREATE OR REPLACE FUNCTION public.comms_send_count_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$15fc6cc719b6608a5432d975bcce725f$function$;

CREATE OR REPLACE FUNCTION public.comms_send_count_of(s comms_send)
 RETURNS SETOF comms_send_count
 LANGUAGE sql
 IMMUTABLE
AS $function$9f376dd1ab9ec3a0d7ef9a34653ca179$function$;

CREATE OR REPLACE FUNCTION public.comms_send_count_update()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$d52af2d1fa6c4b0e9d810ad293d2c032$function$;

CREATE OR REPLACE FUNCTION public.comms_send_mark_gone()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$56a476e5e105a98bb53742c853cb7333$function$;

CREATE OR REPLACE FUNCTION public.comms_send_settle(ended job)
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$e95e96661f06aaf3c32f6dd9517f5021$function$;

CREATE OR REPLACE FUNCTION public.comms_template_json(t comms_template)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('name', (t).name, 'channel', (t).channel, 'subject', (t).subject, 'text', (t).text, 'html', (t).html, 'variables', (t).variables, 'created_at', iso((t).created_at), 'updated_at', iso((t).updated_at));

CREATE OR REPLACE FUNCTION public.document_json(id bigint, title text, kind text, media_type text, byte_size bigint, sha256 bytea, page_count integer, document_date date, received_at timestamp with time zone, source text, channel text, note text, protected boolean, supersedes_id bigint, tags text[], created_at timestamp with time zone, updated_at timestamp with time zone, superseded_by_id bigint, attached_to_id bigint)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (SELECT (row_to_json(fields.*))::text AS row_to_json FROM (SELECT document_json.id AS id, document_json.title AS title, document_json.kind AS kind, document_json.media_type AS media_type, document_json.byte_size AS byte_size, encode(document_json.sha256, 'hex'::text) AS sha256, document_json.page_count AS page_count, document_json.document_date AS document_date, iso(document_json.received_at) AS received_at, document_json.source AS source, document_json.channel AS channel, document_json.note AS note, document_json.protected AS protected, document_json.supersedes_id AS supersedes_id, document_json.tags AS tags, iso(document_json.created_at) AS created_at, iso(document_json.updated_at) AS updated_at, document_json.superseded_by_id AS superseded_by_id, document_json.attached_to_id AS attached_to_id) fields);

CREATE OR REPLACE FUNCTION public.document_restore_supersedes()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$c51df3d8a0d730b9a6239e1fd43196c2$function$;

CREATE OR REPLACE FUNCTION public.document_set_superseded()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$3a3657db948f1c8ef8179e01ae459953$function$;

CREATE OR REPLACE FUNCTION public.document_sum_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$bf903d8f02f4b0bd1e319cc82a9a890d$function$;

CREATE OR REPLACE FUNCTION public.document_sum_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$2cafa8eb31312a2de857dee76df16b75$function$;

CREATE OR REPLACE FUNCTION public.document_sum_of(d document)
 RETURNS SETOF document_sum
 LANGUAGE sql
 IMMUTABLE
AS $function$496aa72785400e085bdb9082fa7c4c78$function$;

CREATE OR REPLACE FUNCTION public.document_sum_update()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$8ffa50f37ce864b5d18c28262e46b1cf$function$;

CREATE OR REPLACE FUNCTION public.document_supersedes()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$4278cc52cbee42253bcda090dd8fb6eb$function$;

CREATE OR REPLACE FUNCTION public.document_tag_count_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$b2fa1a38214b4f51df8d729462f87fc9$function$;

CREATE OR REPLACE FUNCTION public.document_tag_count_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$74f1e2efe571ab3a918f044b311c6af2$function$;

CREATE OR REPLACE FUNCTION public.document_tag_count_of(d document)
 RETURNS SETOF document_tag_count
 LANGUAGE sql
 IMMUTABLE
AS $function$21a580d80b0f88e8c078ca675ae0e59a$function$;

CREATE OR REPLACE FUNCTION public.document_tag_count_update()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$75a2a16f82348ff0b9d848b0eb452cdb$function$;

CREATE OR REPLACE FUNCTION public.document_tags_sync()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$841924289e4e7d79fda8801fdaefb08d$function$;

CREATE OR REPLACE FUNCTION public.document_vector(title text, note text, tags text[], document_date date)
 RETURNS tsvector
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (((setweight(search_vector(title), 'A'::"char") || setweight(search_vector(array_to_string(tags, ' '::text)), 'A'::"char")) || setweight(search_vector(COALESCE(note, ''::text)), 'B'::"char")) || COALESCE(setweight(search_vector((json_build_array(document_date) ->> 0)), 'B'::"char"), ''::tsvector));

CREATE OR REPLACE FUNCTION public.document_words_store()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$2544980e9dbceca31c42033cd097ac7d$function$;

CREATE OR REPLACE FUNCTION public.email_change_confirm(digest bytea)
 RETURNS TABLE(account_id integer, side text, outcome text, old_email text, new_email text, session_id uuid)
 LANGUAGE plpgsql
AS $function$aeb71faf8359597a808483e1b65ab684$function$;

CREATE OR REPLACE FUNCTION public.email_change_json(c email_change)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('email', (c).email, 'old_confirmed', ((c).old_confirmed_at IS NOT NULL), 'new_confirmed', ((c).new_confirmed_at IS NOT NULL), 'created_at', iso((c).created_at), 'expires_at', iso((c).expires_at));

CREATE OR REPLACE FUNCTION public.folded(value text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN lower(unaccent('unaccent'::regdictionary, value));

CREATE OR REPLACE FUNCTION public.idempotency_claim(scope text, key text, fingerprint bytea)
 RETURNS TABLE(state text, status smallint, headers jsonb, body text, job_id uuid)
 LANGUAGE plpgsql
AS $function$890c9e245aae3354d88306a54cc491b8$function$;

CREATE OR REPLACE FUNCTION public.invite_address_lock(email text)
 RETURNS void
 LANGUAGE sql
AS $function$057ba380320c21a7094f9818a8dfab4f$function$;

CREATE OR REPLACE FUNCTION public.invite_json(i organization_invite)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (i).id, 'organization_id', (i).organization_id, 'email', (i).email, 'role', (i).role, 'status', (i).status, 'created_at', iso((i).created_at), 'expires_at', iso((i).expires_at));

CREATE OR REPLACE FUNCTION public.invites_accept(account_id integer, address text)
 RETURNS TABLE(invite_id bigint, organization_id integer, role text, was_member boolean)
 LANGUAGE plpgsql
AS $function$9f7a119210e9dbcbbbf3cf6c187e3989$function$;

CREATE OR REPLACE FUNCTION public.invites_limit(account_id integer, organization_ids integer[])
 RETURNS json
 LANGUAGE sql
AS $function$4dfb78ccb1d0acf8f8098fd259718301$function$;

CREATE OR REPLACE FUNCTION public.invites_lock(address text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$7b58fda56f0464b5810aff84226ee208$function$;

CREATE OR REPLACE FUNCTION public.iso(at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN to_char((at AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'::text);

CREATE OR REPLACE FUNCTION public.job_announce(ids uuid[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$8b99a19f8c86d5beaf05ed4dff41a7c7$function$;

CREATE OR REPLACE FUNCTION public.job_cancel(ids uuid[])
 RETURNS SETOF uuid
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$5c56a6fe06f8d33ffaeb7b20bfb01553$function$;

CREATE OR REPLACE FUNCTION public.job_cancel_dependants(unsuccessful uuid[])
 RETURNS uuid[]
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$782b1208d06cc39837e684946afd57b2$function$;

CREATE OR REPLACE FUNCTION public.job_cancelled(ids uuid[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$77d6293db392c320ff9345a982ba5280$function$;

CREATE OR REPLACE FUNCTION public.job_change(job_id uuid, new_payload jsonb, new_run_at timestamp with time zone)
 RETURNS SETOF uuid
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$b5f5a09778f20bca59645ce7197996f3$function$;

CREATE OR REPLACE FUNCTION public.job_claim(lease uuid, tasks text[], mailboxes text[], limits integer[], firsts bigint[], slots integer[], OUT claims text, OUT again text[], OUT wait_ms double precision, OUT delivers boolean)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_bitmapscan TO 'off'
AS $function$ba8bc9ce643a34a3e6b513edd00855b6$function$;

CREATE OR REPLACE FUNCTION public.job_client_status(status text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (status = ANY (ARRAY['scheduled'::text, 'available'::text])) THEN 'queued'::text ELSE status END;

CREATE OR REPLACE FUNCTION public.job_close(batch uuid)
 RETURNS SETOF uuid
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$421a7089cb43a6afe200d9216f53dbc9$function$;

CREATE OR REPLACE FUNCTION public.job_count_add(queues text[], queued_change integer, running_change integer, waiting_change integer DEFAULT 0)
 RETURNS void
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$c6f04d3ef00f08835a7afe5ace3a03fa$function$;

CREATE OR REPLACE FUNCTION public.job_delete_traces()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$cba2f59ac2ec49de81bead732a11656e$function$;

CREATE OR REPLACE FUNCTION public.job_deliver(ids uuid[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$e22dd00b961215a492094e85f985b4c2$function$;

CREATE OR REPLACE FUNCTION public.job_enqueue(specs jsonb, waiting_quota bigint DEFAULT NULL::bigint)
 RETURNS TABLE(spec_ordinal bigint, job_id uuid, joined boolean)
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_bitmapscan TO 'off'
AS $function$3b5d6e3a2012f1a9a9b92a6de0708b55$function$;

CREATE OR REPLACE FUNCTION public.job_event_line(job job, seq integer, kind text, data jsonb)
 RETURNS text
 LANGUAGE sql
 STABLE
RETURN concat_ws('	'::text, (job).id, seq, kind, CASE WHEN (kind = 'status'::text) THEN COALESCE((data ->> 'status'::text), ''::text) ELSE ''::text END, COALESCE(((job).owner_id)::text, CASE WHEN ((job).queue = ANY (ARRAY['accounts'::text, 'payments'::text, 'schedules'::text, 'webhooks'::text])) THEN '0'::text ELSE ''::text END), (job).queue, (job).name, COALESCE(((job).batch_id)::text, ''::text), (CASE WHEN (kind <> 'status'::text) THEN data ELSE ((json_strip_nulls(json_build_object('job_id', (job).id, 'status', (data ->> 'status'::text), 'label', (data ->> 'label'::text), 'progress', CASE WHEN (((data ->> 'current'::text) IS NOT NULL) OR ((data ->> 'total'::text) IS NOT NULL)) THEN json_build_object('current', ((data ->> 'current'::text))::integer, 'total', ((data ->> 'total'::text))::integer) ELSE NULL::json END, 'error', CASE WHEN (((data ->> 'status'::text) = ANY (ARRAY['failed'::text, 'cancelled'::text])) AND ((job).error_code IS NOT NULL)) THEN json_build_object('code', (job).error_code, 'detail', (job).error_detail, 'retry_after', CASE WHEN ((job).retry_at > clock_timestamp()) THEN (ceil(EXTRACT(epoch FROM ((job).retry_at - clock_timestamp()))))::integer ELSE NULL::integer END) ELSE NULL::json END)))::jsonb || CASE WHEN ((data ->> 'status'::text) = 'done'::text) THEN jsonb_build_object('result', (job).result) ELSE '{}'::jsonb END) END)::text);

CREATE OR REPLACE FUNCTION public.job_events_after(ids uuid[], afters integer[], most integer)
 RETURNS SETOF text
 LANGUAGE plpgsql
 STABLE
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$4860d7d4c4784522f2e582b2d066d6b6$function$;

CREATE OR REPLACE FUNCTION public.job_expires_at(job job, retention double precision[])
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN CASE WHEN ((job).finished_at IS NOT NULL) THEN GREATEST(((job).finished_at + make_interval(secs => (retention)[CASE WHEN ((job).status = 'failed'::text) THEN 2 ELSE 1 END])), CASE WHEN ((job).batch_id IS NOT NULL) THEN (SELECT CASE WHEN (b.finished_at IS NULL) THEN 'infinity'::timestamp with time zone ELSE (b.finished_at + make_interval(secs => (job_expires_at.retention)[CASE WHEN (b.status = 'failed'::text) THEN 2 ELSE 1 END])) END AS "case" FROM job b WHERE (b.id = (job_expires_at.job).batch_id)) ELSE NULL::timestamp with time zone END) ELSE NULL::timestamp with time zone END;

CREATE OR REPLACE FUNCTION public.job_fence(job_id uuid, of_attempt integer)
 RETURNS boolean
 LANGUAGE sql
AS $function$1a576c799471b79d8d2f03287f9ff299$function$;

CREATE OR REPLACE FUNCTION public.job_finish(entries jsonb, suspect integer, max_interruptions integer)
 RETURNS SETOF uuid
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$02cb669db3ef6e3ccd2a6dec570ee4e7$function$;

CREATE OR REPLACE FUNCTION public.job_hold(ids uuid[], after uuid[], after_outcome text)
 RETURNS void
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$0d5e3c053f716e7701d9b5cc4c436ace$function$;

CREATE OR REPLACE FUNCTION public.job_json(job job, retention double precision[] DEFAULT NULL::double precision[])
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('job_id', (job).id, 'name', (job).name, 'queue', (job).queue, 'status', job_client_status((job).status), 'label', (job).label, 'progress', CASE WHEN (((job).progress_current IS NOT NULL) OR ((job).progress_total IS NOT NULL)) THEN json_build_object('current', (job).progress_current, 'total', (job).progress_total) ELSE NULL::json END, 'attempts', (job).attempt, 'retry_of', (job).retry_of, 'batch_id', (job).batch_id, 'result', (job).result, 'error', CASE WHEN ((job).error_code IS NOT NULL) THEN json_build_object('code', (job).error_code, 'detail', (job).error_detail) ELSE NULL::json END, 'created_at', iso((job).created_at), 'run_at', CASE WHEN ((job).status = ANY (ARRAY['waiting'::text, 'scheduled'::text, 'available'::text])) THEN iso((job).run_at) ELSE NULL::text END, 'started_at', iso((job).started_at), 'finished_at', iso((job).finished_at), 'expires_at', iso(job_expires_at(job, retention)));

CREATE OR REPLACE FUNCTION public.job_link(added uuid[], locked text[], has_dependencies boolean)
 RETURNS void
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$3e35ffb492cfbb495988d144febf4a0f$function$;

CREATE OR REPLACE FUNCTION public.job_lock_order(j job)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE
RETURN CASE WHEN (((j).waits_for IS NOT NULL) AND ((j).after IS NULL)) THEN ('9223372036854775807'::bigint - (j).ordinal) ELSE (j).ordinal END;

CREATE OR REPLACE FUNCTION public.job_matches(j job, filter jsonb)
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN ((((filter ->> 'status'::text) IS NULL) OR (job_client_status((j).status) = (filter ->> 'status'::text))) AND (((filter ->> 'queue'::text) IS NULL) OR ((j).queue = (filter ->> 'queue'::text))) AND (((filter ->> 'task'::text) IS NULL) OR ((j).name = (filter ->> 'task'::text))) AND (((filter ->> 'code'::text) IS NULL) OR ((j).error_code = (filter ->> 'code'::text))) AND (((filter ->> 'owner_id'::text) IS NULL) OR ((j).owner_id = ((filter ->> 'owner_id'::text))::integer)) AND (((filter ->> 'batch'::text) IS NULL) OR ((j).batch_id = ((filter ->> 'batch'::text))::uuid)) AND (((filter ->> 'key'::text) IS NULL) OR ((j).key = (filter ->> 'key'::text))) AND (((filter ->> 'request_id'::text) IS NULL) OR ((j).request_id = (filter ->> 'request_id'::text))) AND (((filter ->> 'from'::text) IS NULL) OR ((j).created_at >= ((filter ->> 'from'::text))::timestamp with time zone)) AND (((filter ->> 'to'::text) IS NULL) OR ((j).created_at < ((filter ->> 'to'::text))::timestamp with time zone)) AND (((filter ->> 'ended_from'::text) IS NULL) OR ((j).finished_at >= ((filter ->> 'ended_from'::text))::timestamp with time zone)) AND (((filter ->> 'ended_before'::text) IS NULL) OR ((j).finished_at <= ((filter ->> 'ended_before'::text))::timestamp with time zone)) AND (((filter ->> 'search'::text) IS NULL) OR (POSITION((lower((filter ->> 'search'::text))) IN (lower(concat_ws(' '::text, (j).label, (j).error_detail)))) > 0)));

CREATE OR REPLACE FUNCTION public.job_next(mailboxes text[], firsts bigint[] DEFAULT NULL::bigint[])
 RETURNS TABLE(id uuid, mailbox text, name text, mailbox_limit integer)
 LANGUAGE sql
 STABLE
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_bitmapscan TO 'off'
AS $function$94ce6afaa4f7a737d5ccfc83748d1148$function$;

CREATE OR REPLACE FUNCTION public.job_notify(ids uuid[], afters integer[] DEFAULT NULL::integer[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$273e889e656e1d8b76a16e48e4d7aa5b$function$;

CREATE OR REPLACE FUNCTION public.job_notify_ids(ids uuid[])
 RETURNS void
 LANGUAGE sql
AS $function$585406606e28e5f4cdbecf42d4ed36dc$function$;

CREATE OR REPLACE FUNCTION public.job_orphans(batch_size integer)
 RETURNS TABLE(id uuid, attempt integer, lease_id uuid, interruptions integer)
 LANGUAGE sql
 STABLE
AS $function$16a0de5a313420fe2b4b047de98051f8$function$;

CREATE OR REPLACE FUNCTION public.job_progress(entries jsonb)
 RETURNS TABLE(id uuid, after integer)
 LANGUAGE sql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$260f92a54e88ed6503364b9fa442f3d6$function$;

CREATE OR REPLACE FUNCTION public.job_promote(queues text[], highest smallint)
 RETURNS void
 LANGUAGE sql
AS $function$8c976d4d1ac65c883e04a490c15cebfa$function$;

CREATE OR REPLACE FUNCTION public.job_quota(owners integer[], setting bigint)
 RETURNS void
 LANGUAGE plpgsql
AS $function$629d7a3d6f2d1f214d1219a769d03a52$function$;

CREATE OR REPLACE FUNCTION public.job_release(ended uuid[], closed uuid[] DEFAULT '{}'::uuid[], locked text[] DEFAULT '{}'::text[], had_ended uuid[] DEFAULT '{}'::uuid[])
 RETURNS SETOF uuid
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$2eea587ef9d52c1dafc4c3c9592128a9$function$;

CREATE OR REPLACE PROCEDURE public.job_report(IN progress jsonb, IN ends jsonb, IN suspect integer, IN max_interruptions integer, IN notifies boolean, INOUT progressed uuid[] DEFAULT NULL::uuid[], INOUT afters integer[] DEFAULT NULL::integer[], INOUT ended uuid[] DEFAULT NULL::uuid[])
 LANGUAGE plpgsql
AS $procedure$42508707686c5fa102e6f1fe8e9e74e7$procedure$;

CREATE OR REPLACE FUNCTION public.job_rescue_queued(grace interval)
 RETURNS SETOF uuid
 LANGUAGE plpgsql
AS $function$5f72e6cf4876f4ede0cdb7bf7293fb3b$function$;

CREATE OR REPLACE FUNCTION public.job_rescue_running(rescuer uuid, steady interval, suspect integer, max_interruptions integer, batch_size integer)
 RETURNS SETOF uuid
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$c8f177bbed1fb5eac755676674f220f7$function$;

CREATE OR REPLACE FUNCTION public.job_results(ids uuid[])
 RETURNS json
 LANGUAGE sql
 STABLE
AS $function$de5b3860b50177b3f80b03f53b8069a0$function$;

CREATE OR REPLACE FUNCTION public.job_running(lease uuid, ids uuid[] DEFAULT NULL::uuid[])
 RETURNS json
 LANGUAGE sql
 STABLE
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$fd7e336b59d9ba40f5b65475880c0506$function$;

CREATE OR REPLACE FUNCTION public.job_schedule(batch_size integer)
 RETURNS TABLE(moved integer, next_seconds double precision)
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_bitmapscan TO 'off'
AS $function$d7e06264d2935ae745474c1dc5702148$function$;

CREATE OR REPLACE FUNCTION public.job_settle(ids uuid[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$9e8c326f940f12aa0f3f06c8127e01d4$function$;

CREATE OR REPLACE FUNCTION public.job_state_line(job job)
 RETURNS text
 LANGUAGE sql
 STABLE
RETURN job_event_line(job, (job).seq, 'status'::text, jsonb_build_object('status', job_client_status((job).status), 'label', (job).label, 'current', (job).progress_current, 'total', (job).progress_total));

CREATE OR REPLACE FUNCTION public.job_states(ids uuid[])
 RETURNS SETOF text
 LANGUAGE plpgsql
 STABLE
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$598ee2568f449683e0c9261f121761fb$function$;

CREATE OR REPLACE FUNCTION public.job_store_report(progress jsonb, ends jsonb, suspect integer, max_interruptions integer, OUT progressed uuid[], OUT afters integer[], OUT ended uuid[])
 RETURNS record
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$ee542354384117ae07427d2c73f5240b$function$;

CREATE OR REPLACE FUNCTION public.job_tally_add(entries jsonb)
 RETURNS void
 LANGUAGE sql
AS $function$fdae20ef729fe8622b67ec0f88160479$function$;

CREATE OR REPLACE FUNCTION public.job_unlock_deliveries(pools text[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$665e777a1995488ffae1073063cd024a$function$;

CREATE OR REPLACE FUNCTION public.llm_apply(list jsonb, list_source text, list_url text, day date)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$65fbdcfd743edce865b11cdf42e5ff29$function$;

CREATE OR REPLACE FUNCTION public.login_decide(subject bytea, matches boolean, max_failures integer, lock interval, totp uuid, step bigint, recovery bytea)
 RETURNS text
 LANGUAGE plpgsql
AS $function$4fe74b783f7a170e6828e5ee92ece787$function$;

CREATE OR REPLACE FUNCTION public.login_record(id integer, checked_hash text, totp uuid, rehashed text)
 RETURNS TABLE(role text, is_active boolean)
 LANGUAGE plpgsql
AS $function$7a8fd439f0b6c4f1b75ed50359635814$function$;

CREATE OR REPLACE FUNCTION public.mailbox_lock(mailboxes text[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$b3cddd9bd7039a48855c27a7c0e06236$function$;

CREATE OR REPLACE FUNCTION public.mailbox_lock_key(mailbox text)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN hashtextextended(('millrace.mailbox:'::text || mailbox), (0)::bigint);

CREATE OR REPLACE FUNCTION public.member_json(m organization_member)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (m).id, 'organization_id', (m).organization_id, 'user_id', (m).user_id, 'role', (m).role, 'joined_at', iso((m).joined_at));

CREATE OR REPLACE FUNCTION public.oidc_identity_json(i oidc_identity)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (i).id, 'issuer', (i).issuer, 'email', (i).email, 'created_at', iso((i).created_at), 'last_used_at', iso((i).last_used_at));

CREATE OR REPLACE FUNCTION public.organization_cleanup()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$bde60c64c437d85900b486c80a0e0650$function$;

CREATE OR REPLACE FUNCTION public.organization_json(o organization)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (o).id, 'name', (o).name, 'slug', (o).slug, 'description', (o).description, 'is_active', (o).is_active, 'created_at', iso((o).created_at), 'updated_at', iso((o).updated_at));

CREATE OR REPLACE FUNCTION public.organization_lock(id integer, caller integer)
 RETURNS TABLE(role text)
 LANGUAGE plpgsql
AS $function$4dc25c45b4405cc1a306d25016e9f36d$function$;

CREATE OR REPLACE FUNCTION public.organization_member_check_account()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$888f889a25d09f4cdd71f8f56a73fd98$function$;

CREATE OR REPLACE FUNCTION public.organization_owner()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ab00e528b499879b95c9e20981298fcc$function$;

CREATE OR REPLACE FUNCTION public.organizations_inherit(account_id integer, organization_ids integer[])
 RETURNS json
 LANGUAGE sql
AS $function$f6ae24f6a83f77adf367d826ff19fb4e$function$;

CREATE OR REPLACE FUNCTION public.owned_query(owner integer, query tsquery)
 RETURNS tsquery
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (regexp_replace(replace((query)::text, '<->'::text, '&'::text), '''([^'']+)'''::text, ((''''::text || owner_prefix(owner)) || '\1'''::text), 'g'::text))::tsquery;

CREATE OR REPLACE FUNCTION public.owned_vector(owner integer, vector tsvector)
 RETURNS tsvector
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN array_to_tsvector(ARRAY(SELECT (owner_prefix(owned_vector.owner) || word.word) FROM unnest(tsvector_to_array(owned_vector.vector)) word(word)));

CREATE OR REPLACE FUNCTION public.owner_prefix(owner integer)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (to_hex(COALESCE(owner, 0)) || ':'::text);

CREATE OR REPLACE FUNCTION public.page_compute_search()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$7227eb16d8008a0f5f8a777ba317f90d$function$;

CREATE OR REPLACE FUNCTION public.page_divide()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$5fce28954441ca2e1178cf34341c98d5$function$;

CREATE OR REPLACE FUNCTION public.page_last_part(content text)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (GREATEST(0, (length(content) - 1)) / 16000);

CREATE OR REPLACE FUNCTION public.page_part(content text, part integer)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (part = 0) THEN "left"(content, 16000) ELSE substr(content, ((part * 16000) - 199), 16200) END;

CREATE OR REPLACE FUNCTION public.partitions_maintain(of_table regclass, keep_days integer, since timestamp with time zone DEFAULT now(), OUT made integer, OUT dropped integer)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET "TimeZone" TO 'utc'
 SET lock_timeout TO '0'
AS $function$490234878d6daa3ba2929c06fd923b8a$function$;

CREATE OR REPLACE FUNCTION public.passkey_json(p passkey)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (p).id, 'name', (p).name, 'is_synced', (p).is_synced, 'transports', (p).transports, 'created_at', iso((p).created_at), 'last_used_at', iso((p).last_used_at));

CREATE OR REPLACE FUNCTION public.payment_apply(changes jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$09499b8d4877cfa434065be58e2b4574$function$;

CREATE OR REPLACE FUNCTION public.payment_apply_dispute(dispute text, ids text[], new_facts jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$b902fea5c1ac474a9403c4af3e41f15c$function$;

CREATE OR REPLACE FUNCTION public.payment_apply_refund(refund text, ids text[], request uuid, new_facts jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$307f846e0c25207ecd525b375a859f6e$function$;

CREATE OR REPLACE FUNCTION public.payment_apply_subscription(subscription text, new_facts jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$7504a27d7075fa22fad2d82678c61c2d$function$;

CREATE OR REPLACE FUNCTION public.payment_apply_transaction(ids text[], new_facts jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$ac06d50b27f07ad1c87dc00739ec78de$function$;

CREATE OR REPLACE FUNCTION public.payment_customer_ensure(provider_customer text)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$82795eae15f1767ef762620fa5574d75$function$;

CREATE OR REPLACE FUNCTION public.payment_dispute_json(d payment_dispute, t payment_transaction)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (d).id, 'transaction_id', (d).transaction_id, 'provider_dispute_id', (d).provider_dispute_id, 'status', (d).status, 'reason', (d).reason, 'amount', COALESCE((d).amount, (t).amount, (0)::bigint), 'currency', COALESCE((d).currency, (t).currency), 'evidence_due_by', iso((d).evidence_due_by), 'event_type', (d).event_type, 'created_at', iso((d).created_at), 'updated_at', iso((d).updated_at));

CREATE OR REPLACE FUNCTION public.payment_dispute_set_customer()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ff564496b35e2ec7791fdac62b0f70e4$function$;

CREATE OR REPLACE FUNCTION public.payment_disputes_update_customer()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$f8a168269ad9c7d8fdb21b66d77652d3$function$;

CREATE OR REPLACE FUNCTION public.payment_event_apply(event text, changes jsonb)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$0d70165f284b44d01bd4201f89645084$function$;

CREATE OR REPLACE FUNCTION public.payment_event_store(id text, type text, created_at timestamp with time zone, data jsonb)
 RETURNS TABLE(fresh boolean, job_id uuid)
 LANGUAGE plpgsql
AS $function$75ca952a7d9c97210e0b6b5603139fd1$function$;

CREATE OR REPLACE FUNCTION public.payment_join(one jsonb, other jsonb)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (SELECT COALESCE(jsonb_object_agg(winners.key, winners.value), '{}'::jsonb) AS "coalesce" FROM (SELECT DISTINCT ON (entries.key) entries.key, entries.value FROM (SELECT jsonb_each.key, jsonb_each.value FROM jsonb_each(payment_join.one) jsonb_each(key, value) UNION ALL SELECT jsonb_each.key, jsonb_each.value FROM jsonb_each(payment_join.other) jsonb_each(key, value)) entries ORDER BY entries.key, ((entries.value ->> 0) COLLATE "C") DESC, (((entries.value -> 1))::text COLLATE "C") DESC) winners);

CREATE OR REPLACE FUNCTION public.payment_refund_reserve(id bigint, owner integer, any_owner boolean, amount bigint, reason text)
 RETURNS TABLE(refund_id bigint, problem text, status text, available bigint, granted bigint, currency text, account_id integer)
 LANGUAGE plpgsql
AS $function$7591969063a9b707fdfd31488d06bf08$function$;

CREATE OR REPLACE FUNCTION public.payment_refunded(facts jsonb, refunds bigint, returned bigint)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN GREATEST(refunds, (((facts #>> '{refunded,1,amount}'::text[]))::bigint - returned));

CREATE OR REPLACE FUNCTION public.payment_refunds_sum()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$457cfbc5655cc7d50c00bf147c537c39$function$;

CREATE OR REPLACE FUNCTION public.payment_status(is_refund boolean, facts jsonb, refunded bigint)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (is_refund OR (COALESCE((facts #>> '{outcome,1}'::text[]), 'pending'::text) <> 'succeeded'::text)) THEN COALESCE((facts #>> '{outcome,1}'::text[]), 'pending'::text) WHEN (refunded = 0) THEN 'succeeded'::text WHEN (refunded >= ((facts #>> '{money,1,amount}'::text[]))::bigint) THEN 'refunded'::text ELSE 'partially_refunded'::text END;

CREATE OR REPLACE FUNCTION public.payment_subscription_count_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$1ffd51c38fd37cc369c31ba7afdc770b$function$;

CREATE OR REPLACE FUNCTION public.payment_subscription_count_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$b7a284d0687f3990071201c228d29eb8$function$;

CREATE OR REPLACE FUNCTION public.payment_subscription_count_of(s payment_subscription)
 RETURNS SETOF payment_subscription_count
 LANGUAGE sql
 IMMUTABLE
AS $function$4e48582ed65d8579cec6dd610f93421e$function$;

CREATE OR REPLACE FUNCTION public.payment_subscription_count_update()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$5f8bf69cd2f244eccd5b5a066832d1b7$function$;

CREATE OR REPLACE FUNCTION public.payment_subscription_json(s payment_subscription)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (s).id, 'provider_subscription_id', (s).provider_subscription_id, 'plan_name', (s).plan_name, 'status', (s).status, 'current_period_start', iso((s).current_period_start), 'current_period_end', iso((s).current_period_end), 'cancel_at_period_end', (s).cancel_at_period_end, 'cancel_at', iso((s).cancel_at));

CREATE OR REPLACE FUNCTION public.payment_sum_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$71923e240d6affdd333b24a4dd672a1d$function$;

CREATE OR REPLACE FUNCTION public.payment_sum_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$e1bd04888ed00f67451341bd36fc308c$function$;

CREATE OR REPLACE FUNCTION public.payment_sum_of(t payment_transaction)
 RETURNS SETOF payment_sum
 LANGUAGE sql
 IMMUTABLE
AS $function$3228c4d02fca6a46ad1fc54d93625b87$function$;

CREATE OR REPLACE FUNCTION public.payment_sum_update()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$835d64b797dbe4d828bb0c4e51c8995e$function$;

CREATE OR REPLACE FUNCTION public.payment_transaction_json(t payment_transaction)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (t).id, 'provider_transaction_id', (t).provider_transaction_id, 'type', (t).type, 'status', (t).status, 'amount', (t).amount, 'currency', (t).currency, 'description', COALESCE((t).description, ('Refund of transaction '::text || (t).charge_id), ''::text), 'created_at', iso((t).created_at));

CREATE OR REPLACE FUNCTION public.payment_transactions_lock(ids text[])
 RETURNS bigint[]
 LANGUAGE plpgsql
AS $function$2eeaafd691a9d6290d16bb4d5673f9f3$function$;

CREATE OR REPLACE FUNCTION public.payment_with_account(public_json json, account integer)
 RETURNS json
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (((("left"((public_json)::text, '-1'::integer) || ', "account_id" : '::text) || COALESCE((account)::text, 'null'::text)) || '}'::text))::json;

CREATE OR REPLACE FUNCTION public.planned_rows(query text)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$3ae17be271e221daf2a17fa765492839$function$;

CREATE OR REPLACE FUNCTION public.purge_rows(of_table regclass, by_column name, id integer, batch_size integer, clear_only boolean, child_tables regclass[], child_columns name[])
 RETURNS integer
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$bda429ca408dbeb0b964a6772f1d4ef9$function$;

CREATE OR REPLACE FUNCTION public.quota_exceeded(account integer, kinds text[], defaults bigint[])
 RETURNS TABLE(kind text, quota bigint)
 LANGUAGE plpgsql
AS $function$3abc0e415bf6969f86f8ca14bf64a832$function$;

CREATE OR REPLACE FUNCTION public.quota_usage(account integer, kind text)
 RETURNS bigint
 LANGUAGE sql
 STABLE
 SET enable_seqscan TO 'off'
AS $function$929b65d5abd3a2f2a4769d62e6af1d70$function$;

CREATE OR REPLACE FUNCTION public.rag_affected_collections(owner integer, documents bigint[])
 RETURNS TABLE(id integer, name text)
 LANGUAGE plpgsql
AS $function$bb8dff1ffc72d66509e196f50b7f6743$function$;

CREATE OR REPLACE FUNCTION public.rag_block_size()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN 8192;

CREATE OR REPLACE FUNCTION public.rag_changed_files(collection integer, build uuid, removed_files bigint[])
 RETURNS TABLE(file_id bigint, is_added boolean, chunk_count integer)
 LANGUAGE sql
 STABLE
AS $function$ac070ec4eea46c12efeb296c3ed76ed3$function$;

CREATE OR REPLACE FUNCTION public.rag_chunk_metadata(chunk rag_chunk)
 RETURNS jsonb
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$de7dd886f21393d0a96ddb1b9a6b60dc$function$;

CREATE OR REPLACE FUNCTION public.rag_copy_vectors(collection integer, build uuid, of_model text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$7a09ff50714fbd533ff65437c34968b4$function$;

CREATE OR REPLACE FUNCTION public.rag_dictionary(sample text)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$af8afdb50c730de7b5e8ec874b769c83$function$;

CREATE OR REPLACE FUNCTION public.rag_file_metadata(file rag_file, document document)
 RETURNS jsonb
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$82c3112b4c7738666a3c9921b7a30a47$function$;

CREATE OR REPLACE FUNCTION public.rag_has_neighbours(collection integer, of_model text, size integer)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$a7703c30c14531be6dcdb0ea33920bd3$function$;

CREATE OR REPLACE FUNCTION public.rag_length_code(length integer)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (LEAST((255)::double precision, round((((16)::double precision * ln(((length + 1))::double precision)) / ln((2)::double precision)))))::integer;

CREATE OR REPLACE FUNCTION public.rag_merge_postings(collection integer, added_files bigint[], removed_files bigint[])
 RETURNS void
 LANGUAGE sql
AS $function$929e1ecaef1e46e9d56ec19d746bd0dc$function$;

CREATE OR REPLACE FUNCTION public.rag_neighbour_table(size integer)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$68e3d22e971e1ebb39829b05427fa465$function$;

CREATE OR REPLACE FUNCTION public.rag_neighbours(collection integer, of_model text, size integer, query_vector text, max_chunks integer, numbers integer[] DEFAULT NULL::integer[])
 RETURNS TABLE(number integer, score double precision)
 LANGUAGE plpgsql
AS $function$4e431dd87528afac2daa2bbca3596beb$function$;

CREATE OR REPLACE FUNCTION public.rag_neighbours_add(size integer, of_model text, files bigint[], ordinals integer[], vectors text[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$e49e4f2934147b78057ac70b6d1fa2bb$function$;

CREATE OR REPLACE FUNCTION public.rag_neighbours_prepare(size integer)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$81967978025b673211f6a6dcf2f4bda4$function$;

CREATE OR REPLACE FUNCTION public.rag_open_documents(p_name text, owner integer, new_selection jsonb, new_metadata jsonb)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$f59d748a3f6627d2ca226b2eafe58aa6$function$;

CREATE OR REPLACE FUNCTION public.rag_swap(collection integer, build uuid, removed_files bigint[], request jsonb, new_model text)
 RETURNS TABLE(document_count integer, chunk_count integer)
 LANGUAGE plpgsql
AS $function$0ede33796c961a0e3047929912cc9b36$function$;

CREATE OR REPLACE FUNCTION public.rag_term(word text)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN hashtext((word COLLATE "C"));

CREATE OR REPLACE FUNCTION public.rag_terms(content text, dictionary regdictionary)
 RETURNS TABLE(terms integer[], common_terms integer[])
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$bc3bd0f918f41b318f6ba56ca7d42ff3$function$;

CREATE OR REPLACE FUNCTION public.request_limit_acquire(name text, subject text, max_hits integer, span interval)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$3d6160387cf7efdf900222be8ebf5bac$function$;

CREATE OR REPLACE FUNCTION public.search_any_of(queries tsquery[])
 RETURNS tsquery
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$6c544222a05318f8ac4f373212d156a1$function$;

CREATE OR REPLACE FUNCTION public.search_count_hits(words tsquery)
 RETURNS bigint
 LANGUAGE sql
 STABLE
AS $function$9271d8ccdb23476a44bb616f06dffb19$function$;

CREATE OR REPLACE FUNCTION public.search_date(year text, month text, day text)
 RETURNS date
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$f760126e378814c0db992fdcf3258766$function$;

CREATE OR REPLACE FUNCTION public.search_date_query(day date)
 RETURNS tsquery
 LANGUAGE sql
 STABLE
AS $function$23e06b0c6b257823962c9293b9b78406$function$;

CREATE OR REPLACE FUNCTION public.search_dates(term text)
 RETURNS date[]
 LANGUAGE plpgsql
 STABLE
AS $function$b199ca953f88c2883188024dd83028a7$function$;

CREATE OR REPLACE FUNCTION public.search_english_words()
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$81f206e912224c05efb32a4d0f817536$function$;

CREATE OR REPLACE FUNCTION public.search_first_match(vector tsvector, query tsquery)
 RETURNS integer
 LANGUAGE sql
 STABLE
AS $function$fc2e81f884fd84286783fae2fc9aa2b4$function$;

CREATE OR REPLACE FUNCTION public.search_fold(content text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$2bc4ff6837eb1f708face246f0e80b26$function$;

CREATE OR REPLACE FUNCTION public.search_han(number integer)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((CASE WHEN (number >= 20) THEN substr('二三四五六七八九'::text, ((number / 10) - 1), 1) ELSE ''::text END || CASE WHEN (number >= 10) THEN '十'::text ELSE ''::text END) || substr('一二三四五六七八九'::text, NULLIF((number % 10), 0), 1));

CREATE OR REPLACE FUNCTION public.search_has_hyphen(content text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((strpos(content, '-
'::text) > 0) OR (strpos(content, '­
'::text) > 0) OR (strpos(content, '‐
'::text) > 0));

CREATE OR REPLACE FUNCTION public.search_index_words(content text)
 RETURNS text[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN string_to_array((search_text(search_joined(content)) || search_spellings(content)), ' '::text);

CREATE OR REPLACE FUNCTION public.search_is_common(word text, dictionary regdictionary)
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$dad63547c9ecd38723201712218d2704$function$;

CREATE OR REPLACE FUNCTION public.search_is_pair(word text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (word ~ (('^['::text || search_pairs()) || ']'::text));

CREATE OR REPLACE FUNCTION public.search_joined(content text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN search_has_hyphen(content) THEN regexp_replace(content, '([^\x01-@\[-`\x7b-\x7f])[-\u00ad\u2010]\n\s*([^\x01-`\x7b-\x7f])'::text, '\1\2'::text, 'g'::text) ELSE content END;

CREATE OR REPLACE FUNCTION public.search_languages()
 RETURNS TABLE(dictionary text, frequent text[])
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$049160c9f59253073d96f83c51062491$function$;

CREATE OR REPLACE FUNCTION public.search_lower(content text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN lower((content COLLATE pg_c_utf8));

CREATE OR REPLACE FUNCTION public.search_months()
 RETURNS text[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ARRAY['de gen|de gener|ean|eanair|ene|enero|gen|gener|gennaio|ian|ianuarie|ion|ionawr|jaan|jaanuar|jan|janar|janeiro|jannar|januar|januara|januari|januarie|january|janv|janvaris|janvier|led|leden|ledna|oca|ocak|sausio|sausis|sij|sijecanj|sijecnja|sty|styczen|stycznia|tammi|tammikuu|tammikuuta|urt|urtarrila|xan|xaneiro|yan|yanvar|ιαν|ιανουαριου|нэгдүгээр сар|сту|студзень|студзеня|січ|січень|січня|янв|январь|января|януари|јан|јануар|јануари|қаң|қаңтар|հնվ|հունվար|հունվարի|ינו|ינואר|جنوري|كانون الثاني|يناير|ژانويه|जनवरी|जन॰|जाने|जानेवारी|জানু|জানুয়ারি|ਜਨ|ਜਨਵਰੀ|જાન્યુ|જાન્યુઆરી|ஜன|ஜனவரி|జన|జనవరి|ಜನ|ಜನವರಿ|ജനു|ജനുവരി|දුරුතු|ม ค|มก กร รา าค คม ม|ມ ກ|ມັ ັງ ງກ ກອ ອນ ນ|ဇန န် ်|ဇန န် ်န နဝ ဝါ ါရ ရီ ီ|იან|იანვარი|ጃን|ጃንዋሪ|មក ករ រា ា'::text, 'chw|chwef|chwefror|de febr|de febrer|feabh|feabhra|feb|febbraio|febr|febreiro|febrer|febrero|februar|februara|februari|februarie|februaris|february|fev|fevereiro|fevr|fevral|fevrier|fra|frar|helmi|helmikuu|helmikuuta|lut|lutego|luty|ots|otsaila|peb|pebrero|shk|shkurt|sub|subat|uno|unor|unora|vasario|vasaris|veebr|veebruar|velj|veljaca|veljace|φεβ|φεβρουαριου|ақп|ақпан|лют|лютага|лютий|лютого|люты|феб|фебруар|фев|февр|февраль|февраля|февруари|хоердугаар сар|փետրվար|փետրվարի|փտվ|פבר|פברואר|شباط|فبراير|فروري|فوريه|फ़रवरी|फ़र॰|फेब्रु|फेब्रुअरी|फेब्रुवारी|ফেব|ফেব্রুয়ারি|ਫ਼ਰ|ਫ਼ਰਵਰੀ|ફેબ્રુ|ફેબ્રુઆરી|பிப்|பிப்ரவரி|ఫిబ్ర|ఫిబ్రవరి|ಫೆಬ್ರ|ಫೆಬ್ರವರಿ|ഫെബ്രു|ഫെബ്രുവരി|නවම්|ก พ|กุ ุม มภ ภา าพ พั ัน นธ ธ์ ์|ກ ພ|ກຸ ຸມ ມພ ພາ າ|ဖေ ေ|ဖေ ေဖ ဖေ ော ာ် ်ဝ ဝါ ါရ ရီ ီ|თებ|თებერვალი|ፌብ|ፌብሩዋሪ|កុ ុម ម្ ្ភ ភៈ ៈ'::text, 'bre|brezen|brezna|de marc|kovas|kovo|maalis|maaliskuu|maaliskuuta|maart|mac|machi|mar|marc|marca|march|marcius|marco|marec|maret|mars|marso|mart|marta|martie|marts|martxoa|marz|marzec|marzo|marzu|maw|mawrth|mrt|ozu|ozujak|ozujka|μαρ|μαρτιου|бер|березень|березня|гуравдугаар сар|мар|март|марта|нау|наурыз|сак|сакавік|сакавіка|մարտ|մարտի|մրտ|מרץ|اذار|مارس|مارچ|मार्च|মার্চ|ਮਾਰਚ|માર્ચ|மார்|மார்ச்|మార్చి|ಮಾರ್ಚ್|മാർ|മാർച്ച്|මැදින්|มี ี ค|มี ีน นา าค คม ม|ມ ນ|ມີ ີນ ນາ າ|မတ တ် ်|მარ|მარტი|ማርች|មី ីន នា ា'::text, 'abr|abril|aib|aibrean|api|apirila|apr|aprel|april|aprila|aprile|aprili|aprilie|aprilis|aprill|avr|avril|balandis|balandzio|d abr|d abril|dub|duben|dubna|ebr|ebrill|huhti|huhtikuu|huhtikuuta|kwi|kwiecien|kwietnia|nis|nisan|pri|prill|tra|travanj|travnja|απρ|απριλιου|апр|апрель|апреля|април|дөрөвдүгээр сар|квіт|квітень|квітня|кра|красавік|красавіка|сәу|сәуір|ապր|ապրիլ|ապրիլի|אפר|אפריל|ابريل|اوريل|اپريل|نيسان|अप्रिल|अप्रैल|एप्रि|एप्रिल|এপ্রি|এপ্রিল|ਅਪ੍ਰੈ|ਅਪ੍ਰੈਲ|એપ્રિલ|ஏப்|ஏப்ரல்|ఏప్రి|ఏప్రిల్|ಏಪ್ರಿ|ಏಪ್ರಿಲ್|ഏപ്രി|ഏപ്രിൽ|බක්|เม ม ย|เม มษ ษา าย ยน น|ມ ສ|ເມ ມສ ສາ າ|ဧ|ဧပ ပြ ြီ ီ|აპრ|აპრილი|ኤፕሪ|ኤፕሪል|មេ េស សា ា'::text, 'beal|bealtaine|de maig|geguze|geguzes|kve|kveten|kvetna|mag|maggio|mai|maiatza|maig|maijs|maio|maj|maja|majus|may|mayis|mayo|mei|mej|mejju|svi|svibanj|svibnja|touko|toukokuu|toukokuuta|μαι|μαιου|май|мам|мамыр|мая|мај|тавдугаар сар|трав|травень|травня|մայիս|մայիսի|մյս|מאי|ايار|ماي|مايو|مه|ميي|मई|मे|মে|ਮਈ|મે|மே|మే|ಮೇ|മേയ്|වෙසක්|พ ค|พฤ ฤษ ษภ ภา าค คม ม|ພ ພ|ພຶ ຶດ ດສ ສະ ະພ ພາ າ|မေ ေ|მაი|მაისი|ሜይ|ឧស សភ ភា ា'::text, 'birzelio|birzelis|cerven|cervna|cvn|cze|czerwca|czerwiec|de juny|eka|ekaina|giu|giugno|gun|gunju|haz|haziran|hun|hunyo|iun|iunie|iyn|iyun|juin|jun|juna|june|junho|juni|junie|junij|junijs|junio|junius|juny|juuni|kesa|kesakuu|kesakuuta|lip|lipanj|lipnja|meh|mehefin|meith|meitheamh|qer|qershor|xuno|ιουν|ιουνιου|зургаадугаар сар|июн|июнь|июня|мау|маусым|черв|червень|червня|чэр|чэрвень|чэрвеня|юни|јун|јуни|հնս|հունիս|հունիսի|יוני|جون|حزيران|يونيو|ژوين|जुन|जून|জুন|ਜੂਨ|જૂન|ஜூன்|జూన్|ಜೂನ್|ജൂൺ|පොසොන්|มิ ิ ย|มิ ิถ ถุ ุน นา าย ยน น|ມິ ິ ຖ|ມິ ິຖ ຖຸ ຸນ ນາ າ|ဇွ ွန န် ်|ივნ|ივნისი|ጁን|មិ ិថ ថុ ុន នា ា'::text, 'cervence|cervenec|cvc|de jul|de juliol|gor|gorff|gorffennaf|heina|heinakuu|heinakuuta|hul|hulyo|iuil|iul|iulie|iyl|iyul|juil|juillet|jul|jula|julai|julho|juli|julie|julij|julijs|julio|juliol|julius|july|juuli|korr|korrik|liepa|liepos|lip|lipca|lipiec|lug|luglio|lul|lulju|srp|srpanj|srpnja|tem|temmuz|uzt|uztaila|xul|xullo|ιουλ|ιουλιου|долоодугаар сар|июл|июль|июля|лип|липень|липня|ліп|ліпень|ліпеня|шіл|шілде|юли|јул|јули|հլս|հուլիս|հուլիսի|יולי|تموز|جولايي|يوليو|يوليوز|ژوييه|जुलाई|जुलै|जुल॰|জুল|জুলাই|ਜੁਲਾ|ਜੁਲਾਈ|જુલાઈ|ஜூலை|జులై|ಜುಲೈ|ജൂലൈ|ඇසළ|ก ค|กร รก กฎ ฎา าค คม ม|ກ ລ|ກໍ ໍລ ລະ ະກ ກົ ົດ ດ|ဇူ ူ|ဇူ ူလ လိ ို ုင င် ်|ივლ|ივლისი|ጁላይ|កក ក្ ្ក កដ ដា ា'::text, 'abu|abuztua|ag|ago|agost|agosti|agosto|agu|agust|agustos|agustus|aout|aug|august|augusta|augusti|augusts|augustus|augusztus|avg|avgust|avq|avqust|awst|aww|awwissu|d ag|d agost|elo|elokuu|elokuuta|gush|gusht|kol|kolovoz|kolovoza|lun|lunasa|ogo|ogos|rugpjucio|rugpjutis|sie|sierpien|sierpnia|srp|srpen|srpna|αυγ|αυγουστου|авг|август|августа|жні|жнівень|жніўня|наймдугаар сар|серп|серпень|серпня|там|тамыз|օգոստոս|օգոստոսի|օգս|אוג|אוגוסט|اب|اغسطس|اوت|اگست|غشت|अगस्ट|अगस्त|अग॰|ऑग|ऑगस्ट|আগ|আগস্ট|ਅਗ|ਅਗਸਤ|ઑગસ્ટ|ஆக|ஆகஸ்ட்|ఆగ|ఆగస్టు|ಆಗ|ಆಗಸ್ಟ್|ഓഗ|ഓഗസ്റ്റ്|නිකිණි|ส ค|สิ ิง งห หา าค คม ม|ສ ຫ|ສິ ິງ ງຫ ຫາ າ|ဩ|ဩဂ ဂု ုတ တ် ်|აგვ|აგვისტო|ኦገስ|ኦገስት|សី ីហ ហា ា'::text, 'de set|de setembre|eyl|eylul|ira|iraila|mean fomhair|medi|mfomh|rugsejis|rugsejo|ruj|rujan|rujna|sen|sentabr|sentyabr|sep|sept|septemba|septembar|september|septembra|septembre|septembrie|septembris|septiembre|set|setembre|setembro|settembre|settembru|setyembre|sht|shtator|syys|syyskuu|syyskuuta|szept|szeptember|wrz|wrzesien|wrzesnia|zar|zari|σεπ|σεπτεμβριου|вер|верасень|верасня|вересень|вересня|есдүгээр сар|сент|сентябрь|сентября|сеп|септембар|септември|қыр|қыркүйек|սեպ|սեպտեմբեր|սեպտեմբերի|ספט|ספטמבר|ايلول|سبتمبر|ستمبر|سپتامبر|شتنبر|सप्टें|सप्टेंबर|सितंबर|सित॰|सेप्टेम्बर|সেপ|সেপ্ট|সেপ্টেম্বর|ਸਤੰ|ਸਤੰਬਰ|સપ્ટે|સપ્ટેમ્બર|செப்|செப்டம்பர்|సెప్టెం|సెప్టెంబర్|ಸೆಪ್ಟೆಂ|ಸೆಪ್ಟೆಂಬರ್|സെപ്റ്റം|സെപ്റ്റംബർ|බිනර|ก ย|กั ัน นย ยา าย ยน น|ກ ຍ|ກັ ັນ ນຍ ຍາ າ|စက က် ်|စက က် ်တ တင င် ်ဘ ဘာ ာ|სექ|სექტემბერი|ሴፕቴ|ሴፕቴምበር|កញ ញ្ ្ញ ញា ា'::text, 'd oct|d octubre|deireadh fomhair|dfomh|eki|ekim|hyd|hydref|lis|listopad|listopada|loka|lokakuu|lokakuuta|oct|october|octobre|octombrie|octubre|okt|oktabr|oktoba|oktobar|oktober|oktobra|oktobris|oktoober|oktubre|oktyabr|ott|ottobre|ottubru|out|outubro|paz|pazdziernik|pazdziernika|rij|rijen|rijna|spalio|spalis|tet|tetor|urr|urria|οκτ|οκτωβριου|аравдугаар сар|жовт|жовтень|жовтня|кас|кастрычнік|кастрычніка|окт|октобар|октомври|октябрь|октября|қаз|қазан|հոկ|հոկտեմբեր|հոկտեմբերի|אוק|אוקטובר|اكتبر|اكتوبر|تشرين الاول|अक्टूबर|अक्टू॰|अक्टोबर|ऑक्टो|ऑक्टोबर|অক্টো|অক্টোবর|ਅਕਤੂ|ਅਕਤੂਬਰ|ઑક્ટો|ઑક્ટોબર|அக்|அக்டோபர்|అక్టో|అక్టోబర్|ಅಕ್ಟೋ|ಅಕ್ಟೋಬರ್|ഒക്ടോ|ഒക്ടോബർ|වප්|ต ค|ตุ ุล ลา าค คม ม|ຕ ລ|ຕຸ ຸລ ລາ າ|အေ ော ာက က် ်|အေ ော ာက က် ်တ တိ ို ုဘ ဘာ ာ|ოქტ|ოქტომბერი|ኦክቶ|ኦክቶበር|តុ ុល លា ា'::text, 'aza|azaroa|de nov|de novembre|kas|kasim|lapkricio|lapkritis|lis|listopad|listopada|listopadu|marras|marraskuu|marraskuuta|nen|nentor|nob|nobyembre|noiembrie|nov|novemba|novembar|november|novembra|novembre|novembris|novembro|novembru|noviembre|noy|noyabr|samh|samhain|stu|studeni|studenoga|tach|tachwedd|νοε|νοεμβριου|арван нэгдүгээр сар|лист|листопад|листопада|ліс|лістапад|лістапада|нов|новембар|ное|ноември|нояб|ноябрь|ноября|қар|қараша|նոյ|նոյեմբեր|նոյեմբերի|נוב|נובמבר|تشرين الثاني|نوامبر|نوفمبر|نومبر|نونبر|नवंबर|नव॰|नोभेम्बर|नोव्हें|नोव्हेंबर|নভে|নভেম্বর|ਨਵੰ|ਨਵੰਬਰ|નવે|નવેમ્બર|நவ|நவம்பர்|నవం|నవంబర్|ನವೆಂ|ನವೆಂಬರ್|നവം|നവംബർ|ඉල්|พ ย|พฤ ฤศ ศจ จิ ิก กา าย ยน น|ພ ຈ|ພະ ະຈ ຈິ ິກ ກ|နိ ို ု|နိ ို ုဝ ဝင င် ်ဘ ဘာ ာ|ნოე|ნოემბერი|ኖቬም|ኖቬምበር|វិ ិច ច្ ្ឆ ឆិ ិក កា ា'::text, 'abe|abendua|ara|aralik|de des|de desembre|dec|decembar|december|decembra|decembre|decembrie|decembris|decembro|dek|dekabr|des|desemba|desember|desembre|dets|detsember|dez|dezember|dezembro|dhj|dhjetor|dic|dicembre|dicembru|diciembre|dis|disember|disyembre|gru|grudnia|grudzien|gruodis|gruodzio|joulu|joulukuu|joulukuuta|noll|nollaig|pro|prosinac|prosinca|prosince|prosinec|rhag|rhagfyr|δεκ|δεκεμβριου|арван хоердугаар сар|груд|грудень|грудня|дек|декабрь|декабря|декември|дец|децембар|жел|желтоқсан|сне|снежань|снежня|դեկ|դեկտեմբեր|դեկտեմբերի|דצמ|דצמבר|دجنبر|دسامبر|دسمبر|ديسمبر|كانون الاول|डिसें|डिसेंबर|डिसेम्बर|दिसंबर|दिस॰|ডিসে|ডিসেম্বর|ਦਸੰ|ਦਸੰਬਰ|ડિસે|ડિસેમ્બર|டிச|டிசம்பர்|డిసెం|డిసెంబర్|ಡಿಸೆಂ|ಡಿಸೆಂಬರ್|ഡിസം|ഡിസംബർ|උඳුවප්|ธ ค|ธั ัน นว วา าค คม ม|ທ ວ|ທັ ັນ ນວ ວາ າ|ဒီ ီ|ဒီ ီဇ ဇင င် ်ဘ ဘာ ာ|დეკ|დეკემბერი|ዲሴም|ዲሴምበር|ធ្ ្ន នូ ូ'::text];

CREATE OR REPLACE FUNCTION public.search_number(term text)
 RETURNS TABLE(words text[])
 LANGUAGE plpgsql
 IMMUTABLE ROWS 2
AS $function$faac0b4169234b9d174c3005af01b293$function$;

CREATE OR REPLACE FUNCTION public.search_pairs()
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN '\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff'::text;

CREATE OR REPLACE FUNCTION public.search_phrase(words text[], is_prefix boolean)
 RETURNS tsquery
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$577b84e230cf93f638ddb0ef5c74c72b$function$;

CREATE OR REPLACE FUNCTION public.search_separators()
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN '\u0080-\u00a9\u00ab\u00ac\u00ae-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7\u055a-\u055f\u0589\u05be\u05c0\u05c3\u05f3\u05f4\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965\u0e3f\u0e4f\u0e5a\u0e5b\u0f04-\u0f14\u104a-\u104f\u1361-\u1368\u17d4-\u17da\u2000-\u2029\u202f-\u205f\u20a0-\u20cf\u2100-\u214f\u2190-\u2bff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u303d-\u303f\u30fb\ue000-\uf8ff\ufe00-\ufe1f\uff00-\uffff\U0001f000-\U0001faff'::text;

CREATE OR REPLACE FUNCTION public.search_similar_words(owner integer, term text)
 RETURNS SETOF text
 LANGUAGE sql
 STABLE
AS $function$7b249c17c89e37f6ab71e434cc04501a$function$;

CREATE OR REPLACE FUNCTION public.search_snippet(content text, part integer, vector tsvector, query tsquery)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$c7a0625652637393bc73599387f72f71$function$;

CREATE OR REPLACE FUNCTION public.search_spellings(content text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((CASE WHEN search_has_hyphen(content) THEN COALESCE((SELECT string_agg(('  '::text || search_text(((divided.divided[1] || ' '::text) || divided.divided[2]))), ''::text) AS string_agg FROM regexp_matches(search_spellings.content, '([^\x01-@\[-`\x7b-\x7f]+)[-\u00ad\u2010]\n\s*([^\x01-`\x7b-\x7f]+)'::text, 'g'::text) divided(divided)), ''::text) ELSE ''::text END || CASE WHEN (content ~ '[0-9][-. /()]{1,2}[0-9]+[-. /()]{1,2}[0-9]'::text) THEN COALESCE((SELECT string_agg(('  '::text || search_text(regexp_replace(grouped.grouped[1], '[^A-Za-z0-9]'::text, ''::text, 'g'::text))), ''::text) AS string_agg FROM regexp_matches(search_spellings.content, '((?:[A-Z]{2})?[0-9]+(?:[-. /()]{1,2}[0-9]+){2,9})(?![0-9])'::text, 'g'::text) grouped(grouped)), ''::text) ELSE ''::text END) || CASE WHEN (content ~ '[a-z][A-Z]|[A-Z]{2}[a-z]'::text) THEN COALESCE((SELECT string_agg(('  '::text || search_text(regexp_replace(regexp_replace(identifier.identifier[1], '([a-z0-9])([A-Z])'::text, '\1 \2'::text, 'g'::text), '([A-Z])([A-Z][a-z])'::text, '\1 \2'::text, 'g'::text))), ''::text) AS string_agg FROM regexp_matches(search_spellings.content, '[A-Za-z0-9]*(?:[a-z][A-Z]|[A-Z]{2}[a-z])[A-Za-z0-9]*'::text, 'g'::text) identifier(identifier)), ''::text) ELSE ''::text END);

CREATE OR REPLACE FUNCTION public.search_stems(owner integer, term text)
 RETURNS SETOF text
 LANGUAGE sql
 STABLE
AS $function$07592a30d068297928e206dbac49e085$function$;

CREATE OR REPLACE FUNCTION public.search_terms(p_owner integer, query text)
 RETURNS TABLE(n integer, negated boolean, is_phrase boolean, is_partial boolean, exact tsquery, wide tsquery, words tsquery)
 LANGUAGE plpgsql
 STABLE ROWS 3
AS $function$f9ac39003174484e907651c89c33468d$function$;

CREATE OR REPLACE FUNCTION public.search_text(content text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$3d84a793e6ae5953132320b10608fb72$function$;

CREATE OR REPLACE FUNCTION public.search_unaccent(content text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN unaccent('unaccent'::regdictionary, content);

CREATE OR REPLACE FUNCTION public.search_vector(content text)
 RETURNS tsvector
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (COALESCE((SELECT string_agg((("left"(given.word, 100) || ':'::text) || given.n), ' '::text) AS string_agg FROM unnest(search_index_words(search_vector.content)) WITH ORDINALITY given(word, n) WHERE ((given.word <> ''::text) AND (given.n <= 16383))), ''::text))::tsvector;

CREATE OR REPLACE FUNCTION public.search_words(content text)
 RETURNS text[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN string_to_array(rtrim(search_text(content)), ' '::text);

CREATE OR REPLACE FUNCTION public.search_words_store(owners integer[], vectors tsvector[])
 RETURNS void
 LANGUAGE sql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$c5947e071fd7cbd7cc0cbc356cbf43f3$function$;

CREATE OR REPLACE FUNCTION public.search_words_sweep(keep_days integer, batch_size integer, OUT looked integer, OUT gone integer)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$89efec0a49e2fd0ac9625eaf6e6b5ccd$function$;

CREATE OR REPLACE FUNCTION public.session_refresh(presented bytea, successor bytea, lifetime interval, max_lifetime interval)
 RETURNS TABLE(account_id integer, session_id uuid, role text, replayed boolean, seconds_left integer)
 LANGUAGE plpgsql
AS $function$c8b0eccb39b6bb083b9a87f0d216d7f0$function$;

CREATE OR REPLACE FUNCTION public.start_rate_allowed(r start_rate)
 RETURNS integer
 LANGUAGE sql
RETURN GREATEST(0, ((r).burst + (floor(((((EXTRACT(epoch FROM LEAST((clock_timestamp() - (r).next_at), '00:00:00'::interval)) * ((r).starts)::numeric))::double precision / (r).seconds) + (0.000001)::double precision)))::integer));

CREATE OR REPLACE FUNCTION public.start_rate_next(r start_rate)
 RETURNS timestamp with time zone
 LANGUAGE sql
 IMMUTABLE
RETURN ((r).next_at - ((((r).burst - 1))::double precision * make_interval(secs => ((r).seconds / ((r).starts)::double precision))));

CREATE OR REPLACE FUNCTION public.start_rate_reserve(rate_name text, rate jsonb, max_wait_ms integer, comes_back boolean)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$9ed735c1c44ad898d6aa21bcdb11f57f$function$;

CREATE OR REPLACE FUNCTION public.start_rate_set(rates jsonb)
 RETURNS void
 LANGUAGE sql
AS $function$76aa9b299f16039a272ca330e5330cc8$function$;

CREATE OR REPLACE FUNCTION public.voice_speech_settle(ended job)
 RETURNS void
 LANGUAGE plpgsql
AS $function$aeddb2a11bc724c3251542493b8ef614$function$;

CREATE OR REPLACE FUNCTION public.voice_transcription_json(t voice_transcription)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (t).id, 'status', (t).status, 'job_id', (t).job_id, 'document_id', (t).document_id, 'provider', (t).provider, 'model', (t).model, 'requested_language', (t).requested_language, 'language', (t).language, 'duration_seconds', (t).duration_seconds, 'usage', (t).usage, 'cost', (t).cost, 'error', CASE WHEN ((t).error_code IS NOT NULL) THEN json_build_object('code', (t).error_code, 'detail', COALESCE((t).error_detail, ''::text)) ELSE NULL::json END, 'created_at', iso((t).created_at), 'finished_at', iso((t).settled_at));

CREATE OR REPLACE FUNCTION public.voice_transcription_settle(ended job)
 RETURNS void
 LANGUAGE plpgsql
AS $function$ee6e79a05b036499dbe55f901bd664ad$function$;

CREATE OR REPLACE FUNCTION public.voice_usage_settle(ended job, usage_action text, begun integer)
 RETURNS void
 LANGUAGE plpgsql
AS $function$b4c0d3b48ff8b7101a6e71804144977f$function$;

CREATE OR REPLACE FUNCTION public.webhook_admit()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$4e437641d7c44627aaa10043c13c5bd0$function$;

CREATE OR REPLACE FUNCTION public.webhook_body(type text, at timestamp with time zone, account integer, data json)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN (json_build_object('type', type, 'timestamp', iso(at), 'account_id', account, 'data', data))::text;

CREATE OR REPLACE FUNCTION public.webhook_callback_add(job_id uuid, account integer, url text, host text, key uuid, secret text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$3fbb311ceccba7b33c870bea1a27dc7b$function$;

CREATE OR REPLACE FUNCTION public.webhook_can_manage(e webhook_endpoint, account integer, everything boolean, organization integer)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$776fda085503c5953deff60c9577bbab$function$;

CREATE OR REPLACE FUNCTION public.webhook_claim(endpoint bigint, target_host text, batch_size integer, failure_threshold integer, hold_seconds double precision, proved integer, proved_seconds integer, unproved integer, unproved_seconds integer)
 RETURNS SETOF webhook_delivery
 LANGUAGE plpgsql
AS $function$9642ee56394d58f340134e099f8ae7f9$function$;

CREATE OR REPLACE FUNCTION public.webhook_customer_account(customer bigint)
 RETURNS integer
 LANGUAGE sql
 STABLE
AS $function$38ac0ba570d7fa0fa5e417c39b935f81$function$;

CREATE OR REPLACE FUNCTION public.webhook_delivery_json(d webhook_delivery)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (d).id, 'message_id', (d).message_id, 'type', (d).type, 'url', (d).url, 'status', (d).status, 'attempts', (d).attempts, 'due_at', iso((d).due_at), 'created_at', iso((d).created_at), 'ended_at', iso((d).ended_at), 'last_answer', ((d).answers -> '-1'::integer));

CREATE OR REPLACE FUNCTION public.webhook_emit(account integer, type text, data json)
 RETURNS void
 LANGUAGE sql
AS $function$5ac4945d64ca6ce44128177728ffd31b$function$;

CREATE OR REPLACE FUNCTION public.webhook_emit_dispute()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$da7548cf307c1c58afc05d9ebe354059$function$;

CREATE OR REPLACE FUNCTION public.webhook_emit_send()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$4331fb0cc6ad7f7074af13a17920684b$function$;

CREATE OR REPLACE FUNCTION public.webhook_emit_subscription()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$11c1d25cf65b3e91edcb69922a1a41e2$function$;

CREATE OR REPLACE FUNCTION public.webhook_emit_transaction()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$5c4ac47a936ace43d27e0af4b6224c13$function$;

CREATE OR REPLACE FUNCTION public.webhook_endpoint_json(e webhook_endpoint)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (e).id, 'scope', CASE WHEN ((e).account_id IS NULL) THEN 'service'::text ELSE 'account'::text END, 'account_id', (e).account_id, 'organization_id', (e).organization_id, 'url', (e).url, 'events', (e).events, 'description', (e).description, 'is_active', (e).is_active, 'failures', (e).failures, 'failing_since', iso((e).failing_since), 'paused_until', iso((e).paused_until), 'disabled_at', iso((e).disabled_at), 'proved_at', iso((e).proved_at), 'secret_rolled_at', iso((e).secret_rolled_at), 'created_at', iso((e).created_at), 'updated_at', iso((e).updated_at));

CREATE OR REPLACE FUNCTION public.webhook_is_subscribed(account integer, type text)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$c02d10117260951a9280997d92d64495$function$;

CREATE OR REPLACE FUNCTION public.webhook_job(j job)
 RETURNS json
 LANGUAGE plpgsql
 STABLE
AS $function$1d057f31c514a7871d8caf6c55413560$function$;

CREATE OR REPLACE FUNCTION public.webhook_job_type(j job)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
RETURN CASE WHEN ((j).name = 'jobs.batch'::text) THEN 'batch.done'::text ELSE ('job.'::text || (j).status) END;

CREATE OR REPLACE FUNCTION public.webhook_jobs_ended(ids uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$9c3a4ca92fb5f7c853961fd3984f00d2$function$;

CREATE OR REPLACE FUNCTION public.webhook_member_cleanup()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$a465b24fa129ab2fc7a8b461b4949311$function$;

CREATE OR REPLACE FUNCTION public.webhook_pending_sum_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$02489a4c2b023ff613cf01225be1be41$function$;

CREATE OR REPLACE FUNCTION public.webhook_pending_sum_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$477fc8b1de51712d617d16001992f398$function$;

CREATE OR REPLACE FUNCTION public.webhook_pending_sum_of(d webhook_delivery)
 RETURNS SETOF webhook_pending_sum
 LANGUAGE sql
 IMMUTABLE
AS $function$22c8e0b5d3479b317a0843b24d71c699$function$;

CREATE OR REPLACE FUNCTION public.webhook_pending_sum_update()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$4ed5d8f60b54666003b5ee700d350247$function$;

CREATE OR REPLACE FUNCTION public.webhook_rate_acquire(account integer, target_host text, wanted integer, max_deliveries integer, seconds integer)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$43b38c35f0b4d6bdbbc3725fd0338386$function$;

CREATE OR REPLACE FUNCTION public.webhook_receivers(account integer, type text)
 RETURNS SETOF webhook_endpoint
 LANGUAGE sql
 STABLE
AS $function$eb41270be87e30da2a59167018a53de4$function$;

CREATE OR REPLACE FUNCTION public.webhook_settle(delivery bigint, outcome text, response jsonb, delays integer[], failure_threshold integer)
 RETURNS text
 LANGUAGE plpgsql
AS $function$b1cfa27cbc7f0323fd8da99cc11377b9$function$;

CREATE OR REPLACE FUNCTION public.worker_claim_take(queue_name text, caller integer, is_admin boolean, key_organization integer, lease uuid, claim uuid, worker_name text, worker_info jsonb, seconds integer, wait_seconds integer, wanted text[], most integer, most_bytes integer, dependency_bytes integer, suspect integer, max_interruptions integer, may_create boolean)
 RETURNS json
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$d6a415d00ce94fbfc904c723921e54c3$function$;

CREATE OR REPLACE FUNCTION public.worker_dependencies(ids uuid[], most_bytes integer)
 RETURNS json
 LANGUAGE sql
 STABLE
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$7bf978e62a770e71d75f09fa890c14cf$function$;

CREATE OR REPLACE FUNCTION public.worker_lease_end(lease uuid, caller integer, is_admin boolean, key_organization integer, suspect integer, max_interruptions integer)
 RETURNS json
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$f93a577c80f70d9c7358f2e071eacaf0$function$;

CREATE OR REPLACE FUNCTION public.worker_lease_hold(lease uuid, queue_name text, worker_name text, worker_info jsonb, seconds integer, may_create boolean)
 RETURNS text
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$4d9e6d6de29b7e48825c4ba242544e2d$function$;

CREATE OR REPLACE FUNCTION public.worker_lease_renew(lease uuid, caller integer, is_admin boolean, key_organization integer, ids uuid[], attempts integer[])
 RETURNS json
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$a2af4113bd47d330f89f73eedf4f301e$function$;

CREATE OR REPLACE FUNCTION public.worker_queue_access(q worker_queue, caller integer, is_admin boolean, key_organization integer)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$012adeb0b1658949047d3376c5caaa35$function$;

CREATE OR REPLACE FUNCTION public.worker_queue_claim(queue_name text, lease uuid, wanted text[], most integer, most_bytes integer, suspect integer, max_interruptions integer, OUT claims text, OUT held text, OUT must_repeat boolean)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_material TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$b9af92f59dfa870bc1803d8d44be1377$function$;

CREATE OR REPLACE FUNCTION public.worker_queue_cleanup()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$5b08ccf1404d2ea92bf3b25bfbe18268$function$;

CREATE OR REPLACE FUNCTION public.worker_queue_is_active(q worker_queue)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$6873cad362af5cdeadabe55c8632a6e1$function$;

CREATE OR REPLACE FUNCTION public.worker_queue_json(q worker_queue)
 RETURNS json
 LANGUAGE sql
 STABLE
AS $function$b9427a04ad05f186f6d52b8e3754a3b7$function$;

CREATE OR REPLACE FUNCTION public.worker_task_json(t worker_task)
 RETURNS json
 LANGUAGE sql
 STABLE
AS $function$c9ceb67f4136aefdb58af6986ebcd422$function$;

CREATE TRIGGER account_last_admin_delete AFTER DELETE ON public.account FOR EACH ROW WHEN (((old.role = 'admin'::text) AND old.is_active AND (old.deletion_at IS NULL))) EXECUTE FUNCTION account_last_admin();

CREATE TRIGGER account_last_admin_update AFTER UPDATE OF role, is_active, deletion_at ON public.account FOR EACH ROW WHEN (((old.role = 'admin'::text) AND old.is_active AND (old.deletion_at IS NULL) AND ((new.role <> 'admin'::text) OR (NOT new.is_active) OR (new.deletion_at IS NOT NULL)))) EXECUTE FUNCTION account_last_admin();

CREATE TRIGGER ai_conversation_count_delete AFTER DELETE ON public.ai_conversation REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION ai_conversation_count_delete();

CREATE TRIGGER ai_conversation_count_insert AFTER INSERT ON public.ai_conversation REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ai_conversation_count_insert();

CREATE TRIGGER ai_conversation_reindexed AFTER UPDATE OF title ON public.ai_conversation FOR EACH ROW WHEN ((new.title <> old.title)) EXECUTE FUNCTION ai_titles_index();

CREATE TRIGGER ai_message_added AFTER INSERT ON public.ai_message REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ai_messages_count();

CREATE TRIGGER ai_message_changed AFTER UPDATE ON public.ai_message REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ai_messages_count();

CREATE TRIGGER ai_message_indexed AFTER INSERT ON public.ai_message REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ai_messages_index();

CREATE TRIGGER ai_message_reindexed AFTER UPDATE ON public.ai_message REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ai_messages_reindex();

CREATE TRIGGER ai_message_removed AFTER DELETE ON public.ai_message REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION ai_messages_count();

CREATE TRIGGER ai_message_unindexed AFTER DELETE ON public.ai_message REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION ai_messages_index();

CREATE TRIGGER ai_sentiment_sum_delete AFTER DELETE ON public.ai_sentiment REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION ai_sentiment_sum_delete();

CREATE TRIGGER ai_sentiment_sum_insert AFTER INSERT ON public.ai_sentiment REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ai_sentiment_sum_insert();

CREATE TRIGGER ai_sentiment_sum_update AFTER UPDATE ON public.ai_sentiment REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ai_sentiment_sum_update();

CREATE TRIGGER ai_key_sum_delete AFTER DELETE ON public.ai_usage REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION ai_key_sum_delete();

CREATE TRIGGER ai_key_sum_insert AFTER INSERT ON public.ai_usage REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ai_key_sum_insert();

CREATE TRIGGER ai_key_sum_update AFTER UPDATE ON public.ai_usage REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ai_key_sum_update();

CREATE TRIGGER ai_usage_sum_delete AFTER DELETE ON public.ai_usage REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION ai_usage_sum_delete();

CREATE TRIGGER ai_usage_sum_insert AFTER INSERT ON public.ai_usage REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ai_usage_sum_insert();

CREATE TRIGGER ai_usage_sum_update AFTER UPDATE ON public.ai_usage REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ai_usage_sum_update();

CREATE TRIGGER api_key_cleanup AFTER DELETE ON public.api_key FOR EACH ROW EXECUTE FUNCTION api_key_cleanup();

CREATE TRIGGER audit_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.audit_event FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();

CREATE TRIGGER blog_post_count_delete AFTER DELETE ON public.blog_post REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION blog_post_count_delete();

CREATE TRIGGER blog_post_count_insert AFTER INSERT ON public.blog_post REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION blog_post_count_insert();

CREATE TRIGGER blog_post_count_update AFTER UPDATE ON public.blog_post REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION blog_post_count_update();

CREATE TRIGGER blog_post_index_insert AFTER INSERT ON public.blog_post FOR EACH ROW EXECUTE FUNCTION blog_post_index();

CREATE TRIGGER blog_post_index_update AFTER UPDATE OF title, excerpt, content ON public.blog_post FOR EACH ROW WHEN ((((old.title IS DISTINCT FROM new.title) OR (old.excerpt IS DISTINCT FROM new.excerpt)) OR (old.content IS DISTINCT FROM new.content))) EXECUTE FUNCTION blog_post_index();

CREATE TRIGGER blog_post_tags_update_order AFTER UPDATE OF status, created_at, published_at ON public.blog_post FOR EACH ROW WHEN ((((old.status IS DISTINCT FROM new.status) OR (old.created_at IS DISTINCT FROM new.created_at)) OR (old.published_at IS DISTINCT FROM new.published_at))) EXECUTE FUNCTION blog_post_tags_update_order();

CREATE TRIGGER blog_redirect_end AFTER INSERT ON public.blog_post REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION blog_redirect_end();

CREATE TRIGGER blog_redirect_keep AFTER UPDATE OF slug ON public.blog_post FOR EACH ROW WHEN ((old.slug <> new.slug)) EXECUTE FUNCTION blog_redirect_keep();

CREATE TRIGGER blog_post_tag_added AFTER INSERT ON public.blog_post_tag REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION blog_post_tags_refresh();

CREATE TRIGGER blog_post_tag_removed AFTER DELETE ON public.blog_post_tag REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION blog_post_tags_refresh();

CREATE TRIGGER blog_post_tag_set_order BEFORE INSERT ON public.blog_post_tag FOR EACH ROW EXECUTE FUNCTION blog_post_tag_set_order();

CREATE TRIGGER comms_send_count_delete AFTER DELETE ON public.comms_send REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION comms_send_count_delete();

CREATE TRIGGER comms_send_count_insert AFTER INSERT ON public.comms_send REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION comms_send_count_insert();

CREATE TRIGGER comms_send_count_update AFTER UPDATE ON public.comms_send REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION comms_send_count_update();

CREATE TRIGGER comms_send_mark_gone BEFORE UPDATE OF owner_id ON public.comms_send FOR EACH ROW WHEN (((old.owner_id IS NOT NULL) AND (new.owner_id IS NULL))) EXECUTE FUNCTION comms_send_mark_gone();

CREATE TRIGGER webhook_send_changed AFTER UPDATE OF status ON public.comms_send FOR EACH ROW WHEN (((new.status IS DISTINCT FROM old.status) AND (new.status <> ALL (ARRAY['scheduled'::text, 'queued'::text, 'sending'::text])) AND (new.purpose = 'caller'::text) AND (new.owner_id IS NOT NULL))) EXECUTE FUNCTION webhook_emit_send();

CREATE TRIGGER document_restore_supersedes BEFORE UPDATE OF deleted_at ON public.document FOR EACH ROW WHEN (((old.deleted_at IS NOT NULL) AND (new.deleted_at IS NULL) AND (new.supersedes_id IS NOT NULL))) EXECUTE FUNCTION document_restore_supersedes();

CREATE TRIGGER document_set_superseded_insert AFTER INSERT ON public.document FOR EACH ROW WHEN ((new.supersedes_id IS NOT NULL)) EXECUTE FUNCTION document_set_superseded();

CREATE TRIGGER document_set_superseded_update AFTER UPDATE OF supersedes_id, deleted_at ON public.document FOR EACH ROW WHEN (((new.supersedes_id IS NOT NULL) OR (old.supersedes_id IS NOT NULL))) EXECUTE FUNCTION document_set_superseded();

CREATE TRIGGER document_sum_delete AFTER DELETE ON public.document REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION document_sum_delete();

CREATE TRIGGER document_sum_insert AFTER INSERT ON public.document REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION document_sum_insert();

CREATE TRIGGER document_sum_update AFTER UPDATE ON public.document REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION document_sum_update();

CREATE TRIGGER document_supersedes BEFORE INSERT OR UPDATE OF supersedes_id ON public.document FOR EACH ROW WHEN ((new.supersedes_id <> new.id)) EXECUTE FUNCTION document_supersedes();

CREATE TRIGGER document_tag_count_delete AFTER DELETE ON public.document REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION document_tag_count_delete();

CREATE TRIGGER document_tag_count_insert AFTER INSERT ON public.document REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION document_tag_count_insert();

CREATE TRIGGER document_tag_count_update AFTER UPDATE ON public.document REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION document_tag_count_update();

CREATE TRIGGER document_tags_sync_insert AFTER INSERT ON public.document FOR EACH ROW WHEN ((new.tags <> '{}'::text[])) EXECUTE FUNCTION document_tags_sync();

CREATE TRIGGER document_tags_sync_update AFTER UPDATE ON public.document FOR EACH ROW WHEN ((((old.tags <> '{}'::text[]) OR (new.tags <> '{}'::text[])) AND (((((((((old.tags IS DISTINCT FROM new.tags) OR (old.owner_id IS DISTINCT FROM new.owner_id)) OR (old.kind IS DISTINCT FROM new.kind)) OR (old.day IS DISTINCT FROM new.day)) OR (old.title IS DISTINCT FROM new.title)) OR (old.byte_size IS DISTINCT FROM new.byte_size)) OR (old.page_count IS DISTINCT FROM new.page_count)) OR ((old.superseded_by_id IS NULL) IS DISTINCT FROM (new.superseded_by_id IS NULL))) OR (old.deleted_at IS DISTINCT FROM new.deleted_at)))) EXECUTE FUNCTION document_tags_sync();

CREATE TRIGGER search_words_inserted AFTER INSERT ON public.document REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION document_words_store();

CREATE TRIGGER search_words_updated AFTER UPDATE ON public.document REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION document_words_store();

CREATE TRIGGER page_compute_search_insert BEFORE INSERT ON public.document_page FOR EACH ROW WHEN ((new.search IS NULL)) EXECUTE FUNCTION page_compute_search();

CREATE TRIGGER page_compute_search_update BEFORE UPDATE OF text ON public.document_page FOR EACH ROW WHEN (((NOT (new.search IS DISTINCT FROM old.search)) AND (new.text <> old.text))) EXECUTE FUNCTION page_compute_search();

CREATE TRIGGER page_divide_insert AFTER INSERT ON public.document_page FOR EACH ROW WHEN ((page_last_part(new.text) > 0)) EXECUTE FUNCTION page_divide();

CREATE TRIGGER page_divide_update AFTER UPDATE OF text ON public.document_page FOR EACH ROW WHEN (((new.text <> old.text) AND ((page_last_part(new.text) > 0) OR (page_last_part(old.text) > 0)))) EXECUTE FUNCTION page_divide();

CREATE TRIGGER job_delete_traces AFTER DELETE ON public.job REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION job_delete_traces();

CREATE TRIGGER organization_cleanup AFTER UPDATE OF deleted_at ON public.organization FOR EACH ROW WHEN ((new.deleted_at IS NOT NULL)) EXECUTE FUNCTION organization_cleanup();

CREATE TRIGGER organization_member_check_account BEFORE INSERT ON public.organization_member FOR EACH ROW EXECUTE FUNCTION organization_member_check_account();

CREATE TRIGGER organization_member_check_owner BEFORE UPDATE OF role, user_id ON public.organization_member FOR EACH ROW WHEN (((new.role = 'owner'::text) AND ((old.role <> 'owner'::text) OR (old.user_id <> new.user_id)))) EXECUTE FUNCTION organization_member_check_account();

CREATE TRIGGER organization_owner_delete AFTER DELETE ON public.organization_member FOR EACH ROW WHEN ((old.role = 'owner'::text)) EXECUTE FUNCTION organization_owner();

CREATE TRIGGER organization_owner_update AFTER UPDATE OF role, organization_id ON public.organization_member FOR EACH ROW WHEN (((old.role = 'owner'::text) AND ((new.role <> 'owner'::text) OR (new.organization_id <> old.organization_id)))) EXECUTE FUNCTION organization_owner();

CREATE TRIGGER webhook_member_cleanup AFTER DELETE ON public.organization_member FOR EACH ROW EXECUTE FUNCTION webhook_member_cleanup();

CREATE TRIGGER payment_dispute_set_customer BEFORE INSERT OR UPDATE OF transaction_id, customer_id ON public.payment_dispute FOR EACH ROW EXECUTE FUNCTION payment_dispute_set_customer();

CREATE TRIGGER webhook_dispute_changed AFTER UPDATE ON public.payment_dispute FOR EACH ROW WHEN ((new.status IS DISTINCT FROM old.status)) EXECUTE FUNCTION webhook_emit_dispute();

CREATE TRIGGER webhook_dispute_made AFTER INSERT ON public.payment_dispute FOR EACH ROW EXECUTE FUNCTION webhook_emit_dispute();

CREATE TRIGGER payment_subscription_count_delete AFTER DELETE ON public.payment_subscription REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION payment_subscription_count_delete();

CREATE TRIGGER payment_subscription_count_insert AFTER INSERT ON public.payment_subscription REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION payment_subscription_count_insert();

CREATE TRIGGER payment_subscription_count_update AFTER UPDATE ON public.payment_subscription REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION payment_subscription_count_update();

CREATE TRIGGER webhook_subscription_changed AFTER UPDATE ON public.payment_subscription FOR EACH ROW WHEN (((new.status IS DISTINCT FROM old.status) OR (new.cancel_at_period_end IS DISTINCT FROM old.cancel_at_period_end) OR (new.cancel_at IS DISTINCT FROM old.cancel_at) OR (new.current_period_end IS DISTINCT FROM old.current_period_end))) EXECUTE FUNCTION webhook_emit_subscription();

CREATE TRIGGER webhook_subscription_made AFTER INSERT ON public.payment_subscription FOR EACH ROW EXECUTE FUNCTION webhook_emit_subscription();

CREATE TRIGGER payment_disputes_update_customer AFTER UPDATE OF customer_id ON public.payment_transaction FOR EACH ROW WHEN ((old.customer_id IS DISTINCT FROM new.customer_id)) EXECUTE FUNCTION payment_disputes_update_customer();

CREATE TRIGGER payment_refund_deleted AFTER DELETE ON public.payment_transaction FOR EACH ROW WHEN ((old.charge_id IS NOT NULL)) EXECUTE FUNCTION payment_refunds_sum();

CREATE TRIGGER payment_refund_inserted AFTER INSERT ON public.payment_transaction FOR EACH ROW WHEN ((new.charge_id IS NOT NULL)) EXECUTE FUNCTION payment_refunds_sum();

CREATE TRIGGER payment_refund_updated AFTER UPDATE ON public.payment_transaction FOR EACH ROW WHEN (((old.charge_id IS NOT NULL) OR (new.charge_id IS NOT NULL))) EXECUTE FUNCTION payment_refunds_sum();

CREATE TRIGGER payment_refunded_changed AFTER UPDATE ON public.payment_transaction FOR EACH ROW WHEN (((new.charge_id IS NULL) AND (((old.facts -> 'refunded'::text) IS DISTINCT FROM (new.facts -> 'refunded'::text)) OR ((old.facts -> 'money'::text) IS DISTINCT FROM (new.facts -> 'money'::text))))) EXECUTE FUNCTION payment_refunds_sum();

CREATE TRIGGER payment_sum_delete AFTER DELETE ON public.payment_transaction REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION payment_sum_delete();

CREATE TRIGGER payment_sum_insert AFTER INSERT ON public.payment_transaction REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION payment_sum_insert();

CREATE TRIGGER payment_sum_update AFTER UPDATE ON public.payment_transaction REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION payment_sum_update();

CREATE TRIGGER webhook_transaction_changed AFTER UPDATE ON public.payment_transaction FOR EACH ROW WHEN ((new.shown AND ((NOT old.shown) OR (new.status IS DISTINCT FROM old.status)))) EXECUTE FUNCTION webhook_emit_transaction();

CREATE TRIGGER webhook_transaction_made AFTER INSERT ON public.payment_transaction FOR EACH ROW WHEN (new.shown) EXECUTE FUNCTION webhook_emit_transaction();

CREATE TRIGGER webhook_admit BEFORE INSERT ON public.webhook_delivery FOR EACH ROW EXECUTE FUNCTION webhook_admit();

CREATE TRIGGER webhook_pending_sum_delete AFTER DELETE ON public.webhook_delivery REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION webhook_pending_sum_delete();

CREATE TRIGGER webhook_pending_sum_insert AFTER INSERT ON public.webhook_delivery REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION webhook_pending_sum_insert();

CREATE TRIGGER webhook_pending_sum_update AFTER UPDATE ON public.webhook_delivery REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION webhook_pending_sum_update();

CREATE TRIGGER worker_queue_cleanup AFTER DELETE ON public.worker_queue REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION worker_queue_cleanup();
