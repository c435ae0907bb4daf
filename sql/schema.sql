create extension pg_trgm;

create extension unaccent;

create text search configuration folded (parser = "default");
alter text search configuration folded add mapping for asciihword with unaccent, simple;
alter text search configuration folded add mapping for asciiword with unaccent, simple;
alter text search configuration folded add mapping for email with simple;
alter text search configuration folded add mapping for file with simple;
alter text search configuration folded add mapping for "float" with simple;
alter text search configuration folded add mapping for host with simple;
alter text search configuration folded add mapping for hword with unaccent, simple;
alter text search configuration folded add mapping for hword_asciipart with unaccent, simple;
alter text search configuration folded add mapping for hword_numpart with simple;
alter text search configuration folded add mapping for hword_part with unaccent, simple;
alter text search configuration folded add mapping for "int" with simple;
alter text search configuration folded add mapping for numhword with simple;
alter text search configuration folded add mapping for numword with simple;
alter text search configuration folded add mapping for sfloat with simple;
alter text search configuration folded add mapping for uint with simple;
alter text search configuration folded add mapping for url with simple;
alter text search configuration folded add mapping for url_path with simple;
alter text search configuration folded add mapping for version with simple;
alter text search configuration folded add mapping for word with unaccent, simple;

create table account (
  id integer not null generated always as identity,
  email text not null,
  password_hash text not null,
  full_name text,
  role text not null default 'user'::text,
  is_active boolean not null default true,
  is_verified boolean not null default false,
  last_login timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone,
  constraint account_pkey PRIMARY KEY (id),
  constraint account_email_key UNIQUE (email),
  constraint account_email_check CHECK (((email = lower(email)) AND ((length(email) >= 3) AND (length(email) <= 320)))),
  constraint account_full_name_check CHECK ((length(full_name) <= 200)),
  constraint account_role_check CHECK ((role = ANY (ARRAY['user'::text, 'moderator'::text, 'admin'::text])))
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
  constraint account_token_kind_check CHECK ((kind = ANY (ARRAY['reset'::text, 'verify'::text])))
);

create table ai_agent (
  slug text not null,
  name text not null,
  description text not null default ''::text,
  category text not null default 'general'::text,
  model_id text,
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

create table ai_conversation (
  id uuid not null,
  user_id text not null,
  owner_id integer,
  title text not null,
  provider text not null,
  model text not null,
  last_response_ms double precision,
  unscored_since timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  constraint ai_conversation_pkey PRIMARY KEY (id),
  constraint ai_conversation_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint ai_conversation_title_check CHECK (((length(title) >= 1) AND (length(title) <= 200))),
  constraint ai_conversation_user_id_check CHECK (((length(user_id) >= 1) AND (length(user_id) <= 255)))
);

create table ai_message (
  id uuid not null,
  ordinal bigint not null generated always as identity,
  conversation_id uuid not null,
  role text not null,
  status text not null,
  content text not null,
  job_id uuid,
  provider text,
  model text,
  response_ms double precision,
  error_detail text,
  created_at timestamp with time zone not null default now(),
  settled_at timestamp with time zone,
  constraint ai_message_pkey PRIMARY KEY (id),
  constraint ai_message_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES ai_conversation(id) ON DELETE CASCADE,
  constraint ai_message_job_check CHECK (((role = 'user'::text) OR (job_id IS NOT NULL))),
  constraint ai_message_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text]))),
  constraint ai_message_settled_check CHECK (((status = 'pending'::text) = (settled_at IS NULL))),
  constraint ai_message_status_check CHECK ((status = ANY (ARRAY['complete'::text, 'pending'::text, 'failed'::text, 'stopped'::text]))),
  constraint ai_message_user_check CHECK (((role = 'assistant'::text) OR ((status = 'complete'::text) AND (job_id IS NULL))))
);

create table ai_sentiment (
  conversation_id uuid not null,
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

create table ai_usage (
  id bigint not null generated always as identity,
  user_id text not null,
  owner_id integer,
  conversation_id uuid,
  message_id uuid,
  action text not null,
  vendor text not null,
  model text not null,
  input_tokens bigint not null,
  cached_tokens bigint not null default 0,
  output_tokens bigint not null,
  reasoning_tokens bigint not null default 0,
  cost numeric,
  estimated boolean not null,
  success boolean not null,
  created_at timestamp with time zone not null default now(),
  constraint ai_usage_pkey PRIMARY KEY (id),
  constraint ai_usage_message_id_key UNIQUE (message_id),
  constraint ai_usage_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES account(id) ON DELETE SET NULL,
  constraint ai_usage_cost_check CHECK ((cost >= (0)::numeric)),
  constraint ai_usage_tokens_check CHECK (((input_tokens >= 0) AND (output_tokens >= 0) AND (cached_tokens >= 0) AND (reasoning_tokens >= 0)))
);

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
  constraint audit_event_pkey PRIMARY KEY (id),
  constraint audit_event_kind_check CHECK ((kind ~ '^[a-z_]+\.[a-z_]+$'::text))
);

create table blob (
  id bigint not null generated always as identity,
  sha256 bytea,
  byte_size bigint not null default 0,
  store text not null default 'postgres'::text,
  key uuid not null default gen_random_uuid(),
  upload_id text,
  doomed boolean not null default false,
  created_at timestamp with time zone not null default now(),
  constraint blob_pkey PRIMARY KEY (id),
  constraint blob_sha256_key UNIQUE (sha256),
  constraint blob_doomed_check CHECK (((NOT doomed) OR (sha256 IS NULL))),
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
  id integer not null generated always as identity,
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
  tags text not null default '[]'::text,
  "json" text not null generated always as (blog_post_json(id, title, slug, excerpt, content, status, author_id, author_name, created_at, updated_at, published_at, seo_title, seo_description, hero_image_url, tags)),
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
  posts integer not null,
  constraint blog_post_count_pkey PRIMARY KEY (id)
) with (autovacuum_vacuum_threshold=200, autovacuum_vacuum_scale_factor=0);

create table blog_post_tag (
  post_id integer not null,
  tag_id integer not null,
  constraint blog_post_tag_pkey PRIMARY KEY (post_id, tag_id),
  constraint blog_post_tag_post_id_fkey FOREIGN KEY (post_id) REFERENCES blog_post(id) ON DELETE CASCADE,
  constraint blog_post_tag_tag_id_fkey FOREIGN KEY (tag_id) REFERENCES blog_tag(id) ON DELETE CASCADE
);

create table blog_tag (
  id integer not null generated always as identity,
  name text not null,
  slug text not null,
  created_at timestamp with time zone not null default now(),
  constraint blog_tag_pkey PRIMARY KEY (id),
  constraint blog_tag_name_key UNIQUE (name),
  constraint blog_tag_slug_key UNIQUE (slug),
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
  constraint blog_upload_format_check CHECK ((format = ANY (ARRAY['markdown'::text, 'zip'::text, 'json'::text])))
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
  owner_id integer,
  job_id uuid not null,
  recipients text[] not null,
  message jsonb,
  status text not null default 'queued'::text,
  requests integer not null default 0,
  provider_id text,
  provider_status text,
  error_code text,
  detail text,
  created_at timestamp with time zone not null default now(),
  requested_at timestamp with time zone,
  settled_at timestamp with time zone,
  constraint comms_send_pkey PRIMARY KEY (id),
  constraint comms_send_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES account(id) ON DELETE SET NULL,
  constraint comms_send_channel_check CHECK ((channel = ANY (ARRAY['email'::text, 'sms'::text, 'call'::text]))),
  constraint comms_send_error_check CHECK (((status = 'failed'::text) = (error_code IS NOT NULL))),
  constraint comms_send_message_check CHECK (((status = 'sent'::text) OR (message IS NOT NULL))),
  constraint comms_send_recipients_check CHECK ((cardinality(recipients) > 0)),
  constraint comms_send_requested_check CHECK (((status <> ALL (ARRAY['sending'::text, 'sent'::text, 'unknown'::text])) OR (requested_at IS NOT NULL))),
  constraint comms_send_settled_check CHECK (((status = ANY (ARRAY['sent'::text, 'failed'::text, 'unknown'::text])) = (settled_at IS NOT NULL))),
  constraint comms_send_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'sending'::text, 'sent'::text, 'failed'::text, 'unknown'::text])))
);

create table document (
  id integer not null generated always as identity,
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
  supersedes_id integer,
  tags text[] not null default '{}'::text[],
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone,
  deleted_at timestamp with time zone,
  collected_at timestamp with time zone,
  fields text not null generated always as (document_fields(id, title, kind, media_type, byte_size, sha256, page_count, document_date, received_at, source, channel, note, protected, supersedes_id, tags, created_at, updated_at)),
  search tsvector not null generated always as (document_vector(title, note, tags)),
  constraint document_pkey PRIMARY KEY (id),
  constraint document_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint document_supersedes_id_fkey FOREIGN KEY (supersedes_id) REFERENCES document(id),
  constraint document_kind_check CHECK (((length(kind) >= 1) AND (length(kind) <= 32))),
  constraint document_sha256_check CHECK ((length(sha256) = 32)),
  constraint document_supersedes_id_check CHECK ((supersedes_id <> id)),
  constraint document_tags_check CHECK ((cardinality(tags) <= 100)),
  constraint document_title_check CHECK (((length(title) >= 1) AND (length(title) <= 300)))
);

create table document_page (
  document_id integer not null,
  page_number integer not null,
  status text not null,
  method text not null,
  model text,
  detail text,
  text text not null default ''::text,
  search tsvector not null,
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
  constraint document_page_model_check CHECK (((model IS NULL) OR (method = 'vision'::text))),
  constraint document_page_page_number_check CHECK ((page_number > 0)),
  constraint document_page_reason_check CHECK (((status = 'read'::text) OR (detail IS NOT NULL))),
  constraint document_page_size_check CHECK (((width IS NULL) = (height IS NULL))),
  constraint document_page_status_check CHECK ((status = ANY (ARRAY['read'::text, 'unread'::text])))
);

create table idempotency_key (
  scope text not null,
  key text not null,
  fingerprint bytea not null,
  job_id uuid,
  status smallint,
  headers jsonb,
  body text,
  locked_until timestamp with time zone not null,
  created_at timestamp with time zone not null default now(),
  constraint idempotency_key_pkey PRIMARY KEY (scope, key),
  constraint idempotency_key_answer_check CHECK (((status IS NULL) = (body IS NULL)))
);

create table job (
  id uuid not null,
  ordinal bigint not null generated always as identity,
  name text not null,
  queue text not null,
  lane text not null default 'io'::text,
  owner_id integer,
  actor text,
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
  delivery integer not null default 0,
  lease_id uuid,
  run_at timestamp with time zone not null default now(),
  cancel_requested_at timestamp with time zone,
  result jsonb,
  error_code text,
  error_detail text,
  retry_of uuid,
  request_id text,
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  constraint job_pkey PRIMARY KEY (id),
  constraint job_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint job_error_check CHECK (((status = 'failed'::text) = (error_code IS NOT NULL))),
  constraint job_finished_check CHECK (((status = ANY (ARRAY['done'::text, 'failed'::text, 'cancelled'::text])) = (finished_at IS NOT NULL))),
  constraint job_lane_check CHECK ((lane = ANY (ARRAY['io'::text, 'cpu'::text, 'children'::text, 'model'::text]))),
  constraint job_lease_check CHECK (((status = 'running'::text) = (lease_id IS NOT NULL))),
  constraint job_mailbox_check CHECK (((status <> 'queued'::text) OR (actor IS NOT NULL) OR (delivery = 0))),
  constraint job_max_tries_check CHECK (((max_tries >= 1) AND (max_tries <= 100))),
  constraint job_settle_check CHECK (((settle IS NULL) OR (actor IS NOT NULL))),
  constraint job_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'sent'::text, 'running'::text, 'done'::text, 'failed'::text, 'cancelled'::text])))
) with (fillfactor=85);

create table job_event_row (
  job_id uuid not null,
  seq integer not null,
  kind text not null,
  data jsonb not null,
  created_at timestamp with time zone not null default now(),
  constraint job_event_row_pkey PRIMARY KEY (job_id, seq)
);

create table job_hold (
  id bigint not null generated always as identity,
  lease_id uuid not null,
  queue text not null,
  lane text not null,
  owner integer not null,
  ordinals int8multirange not null,
  taken_at timestamp with time zone not null default now(),
  constraint job_hold_pkey PRIMARY KEY (id),
  constraint job_hold_ordinals_check CHECK ((NOT isempty(ordinals)))
);

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

create table organization (
  id integer not null generated always as identity,
  name text not null,
  slug text not null,
  description text,
  is_active boolean not null default true,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone,
  constraint organization_pkey PRIMARY KEY (id),
  constraint organization_slug_key UNIQUE (slug),
  constraint organization_description_check CHECK (((length(description) >= 1) AND (length(description) <= 2000))),
  constraint organization_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
  constraint organization_slug_check CHECK ((slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'::text))
);

create table organization_invite (
  id integer not null generated always as identity,
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
  constraint organization_invite_email_check CHECK (((email = lower(email)) AND ((length(email) >= 3) AND (length(email) <= 320)))),
  constraint organization_invite_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'member'::text]))),
  constraint organization_invite_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'accepted'::text, 'revoked'::text, 'expired'::text])))
);

create table organization_member (
  id integer not null generated always as identity,
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

create table payment_customer (
  id integer not null generated always as identity,
  user_id integer,
  provider_customer_id text not null,
  created_at timestamp with time zone not null default now(),
  constraint payment_customer_pkey PRIMARY KEY (id),
  constraint payment_customer_provider_customer_id_key UNIQUE (provider_customer_id),
  constraint payment_customer_user_id_key UNIQUE (user_id),
  constraint payment_customer_user_id_fkey FOREIGN KEY (user_id) REFERENCES account(id) ON DELETE SET NULL
);

create table payment_dispute (
  id integer not null generated always as identity,
  transaction_id integer,
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

create table payment_reconciliation (
  single boolean not null default true,
  read_until timestamp with time zone not null,
  constraint payment_reconciliation_pkey PRIMARY KEY (single),
  constraint payment_reconciliation_single_check CHECK (single)
);

create table payment_reference (
  provider_id text not null,
  transaction_id integer not null,
  constraint payment_reference_pkey PRIMARY KEY (provider_id),
  constraint payment_reference_transaction_id_fkey FOREIGN KEY (transaction_id) REFERENCES payment_transaction(id) ON DELETE CASCADE
);

create table payment_subscription (
  id integer not null generated always as identity,
  customer_id integer,
  provider_subscription_id text not null,
  facts jsonb not null default '{}'::jsonb,
  status text not null generated always as (COALESCE((facts #>> '{status,1}'::text[]), 'incomplete'::text)),
  plan_name text not null generated always as (COALESCE((facts #>> '{plan_name,1}'::text[]), ''::text)),
  current_period_start timestamp with time zone generated always as (to_timestamp(((facts #>> '{period_start,1}'::text[]))::double precision)),
  current_period_end timestamp with time zone generated always as (to_timestamp(((facts #>> '{period_end,1}'::text[]))::double precision)),
  cancel_at_period_end boolean not null generated always as (COALESCE(((facts #>> '{cancel_at_period_end,1}'::text[]))::boolean, false)),
  constraint payment_subscription_pkey PRIMARY KEY (id),
  constraint payment_subscription_provider_subscription_id_key UNIQUE (provider_subscription_id),
  constraint payment_subscription_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES payment_customer(id),
  constraint payment_subscription_status_check CHECK ((status = ANY (ARRAY['active'::text, 'past_due'::text, 'canceled'::text, 'incomplete'::text, 'trialing'::text, 'unpaid'::text])))
);

create table payment_transaction (
  id integer not null generated always as identity,
  customer_id integer,
  charge_id integer,
  facts jsonb not null default '{}'::jsonb,
  refunds bigint not null default 0,
  reserved bigint not null default 0,
  job_id uuid,
  reason text,
  type text not null generated always as (
CASE
    WHEN (charge_id IS NOT NULL) THEN 'refund'::text
    WHEN (facts ? 'subscription'::text) THEN 'subscription'::text
    ELSE 'charge'::text
END),
  status text not null generated always as (payment_status((charge_id IS NOT NULL), facts, refunds)),
  amount bigint generated always as (((facts #>> '{money,1,amount}'::text[]))::bigint),
  currency text generated always as ((facts #>> '{money,1,currency}'::text[])),
  refunded bigint not null generated always as (GREATEST(refunds, ((facts #>> '{refunded,1}'::text[]))::bigint)),
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
  constraint payment_transaction_pkey PRIMARY KEY (id),
  constraint payment_transaction_job_id_key UNIQUE (job_id),
  constraint payment_transaction_charge_id_fkey FOREIGN KEY (charge_id) REFERENCES payment_transaction(id),
  constraint payment_transaction_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES payment_customer(id),
  constraint payment_transaction_amount_check CHECK ((amount >= 0)),
  constraint payment_transaction_currency_check CHECK ((currency = lower(currency))),
  constraint payment_transaction_refunds_check CHECK (((refunds >= 0) AND (reserved >= 0) AND (refunds <= amount))),
  constraint payment_transaction_status_check CHECK ((status = ANY (ARRAY['succeeded'::text, 'pending'::text, 'failed'::text, 'refunded'::text, 'partially_refunded'::text, 'canceled'::text])))
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
  terms bytea not null storage external,
  constraint rag_chunk_pkey PRIMARY KEY (file_id, ordinal),
  constraint rag_chunk_file_id_fkey FOREIGN KEY (file_id) REFERENCES rag_file(id) ON DELETE CASCADE,
  constraint rag_chunk_terms_check CHECK (((octet_length(terms) % 4) = 0))
) with (autovacuum_vacuum_scale_factor=0.05);

create table rag_collection (
  id integer not null generated always as identity,
  name text not null,
  version bigint not null default 0,
  embedding_model text,
  dimensions integer,
  has_neighbours boolean not null default false,
  document_count integer not null default 0,
  chunk_count integer not null default 0,
  term_count bigint not null default 0,
  metadata jsonb not null default '{}'::jsonb,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  deleted_at timestamp with time zone,
  constraint rag_collection_pkey PRIMARY KEY (id),
  constraint rag_collection_counts_check CHECK ((LEAST((document_count)::bigint, (chunk_count)::bigint, term_count) >= 0)),
  constraint rag_collection_dimensions_check CHECK ((((embedding_model IS NULL) = (dimensions IS NULL)) AND ((dimensions >= 1) AND (dimensions <= 16000)))),
  constraint rag_collection_name_check CHECK (((length(name) >= 1) AND (length(name) <= 100)))
);

create table rag_file (
  id bigint not null generated always as identity,
  collection_id integer not null,
  build_id uuid,
  source text not null,
  sha256 bytea not null,
  byte_size bigint not null,
  format text not null,
  analysis integer not null,
  chunk_count integer not null,
  term_count integer not null,
  created_at timestamp with time zone not null default now(),
  constraint rag_file_pkey PRIMARY KEY (id),
  constraint rag_file_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES rag_collection(id) ON DELETE CASCADE,
  constraint rag_file_sha256_check CHECK ((octet_length(sha256) = 32))
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
);

create table request_limit (
  name text not null,
  subject text not null,
  hits timestamp with time zone[] not null,
  expires_at timestamp with time zone not null,
  constraint request_limit_pkey PRIMARY KEY (name, subject)
);

create table search_word (
  word text not null,
  constraint search_word_pkey PRIMARY KEY (word)
);

create table session (
  id uuid not null,
  account_id integer not null,
  created_at timestamp with time zone not null default now(),
  revoked_at timestamp with time zone,
  ended_at timestamp with time zone,
  address text,
  user_agent text,
  constraint session_pkey PRIMARY KEY (id),
  constraint session_account_id_fkey FOREIGN KEY (account_id) REFERENCES account(id) ON DELETE CASCADE,
  constraint session_ended_check CHECK (((ended_at IS NULL) OR (revoked_at IS NOT NULL)))
);

create table voice_preview (
  digest bytea not null,
  provider text not null,
  model text not null,
  voice text not null,
  speed numeric not null,
  text text not null,
  generation uuid,
  byte_size integer,
  used_at timestamp with time zone not null default now(),
  constraint voice_preview_pkey PRIMARY KEY (digest),
  constraint voice_preview_byte_size_check CHECK (((byte_size IS NULL) OR ((byte_size > 0) AND (generation IS NOT NULL)))),
  constraint voice_preview_digest_check CHECK ((length(digest) = 32))
);

create table voice_preview_chunk (
  digest bytea not null,
  generation uuid not null,
  ordinal integer not null,
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
  constraint voice_settings_stt_language_check CHECK ((stt_language ~ '^[a-z]{2,3}$'::text)),
  constraint voice_settings_tts_speed_check CHECK (((tts_speed >= 0.25) AND (tts_speed <= (4)::numeric)))
);

create table worker_lease (
  id uuid not null,
  name text not null,
  queues text[] not null,
  pool_ids text[] not null default '{}'::text[],
  threads integer not null default 0,
  memory_bytes bigint not null default 0,
  started_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone not null,
  constraint worker_lease_pkey PRIMARY KEY (id)
);

CREATE INDEX account_token_account_id_idx ON public.account_token USING btree (account_id, kind);

CREATE INDEX account_token_expires_at_idx ON public.account_token USING btree (expires_at);

CREATE INDEX ai_conversation_owner_id_idx ON public.ai_conversation USING btree (owner_id) WHERE (owner_id IS NOT NULL);

CREATE INDEX ai_conversation_unscored_idx ON public.ai_conversation USING btree (unscored_since) WHERE (unscored_since IS NOT NULL);

CREATE INDEX ai_conversation_user_id_idx ON public.ai_conversation USING btree (user_id, updated_at DESC, id DESC);

CREATE INDEX ai_message_conversation_id_idx ON public.ai_message USING btree (conversation_id, ordinal);

CREATE UNIQUE INDEX ai_message_job_id_key ON public.ai_message USING btree (job_id) WHERE (job_id IS NOT NULL);

CREATE INDEX ai_sentiment_negative_idx ON public.ai_sentiment USING btree (scored_at DESC) WHERE (sentiment = ANY (ARRAY['negative'::text, 'frustrated'::text]));

CREATE INDEX ai_usage_created_at_idx ON public.ai_usage USING btree (created_at DESC, id DESC);

CREATE INDEX ai_usage_owner_id_idx ON public.ai_usage USING btree (owner_id) WHERE (owner_id IS NOT NULL);

CREATE INDEX ai_usage_user_id_idx ON public.ai_usage USING btree (user_id, created_at DESC, id DESC);

CREATE INDEX audit_event_account_id_idx ON public.audit_event USING btree (account_id, id DESC) WHERE (account_id IS NOT NULL);

CREATE INDEX audit_event_actor_id_idx ON public.audit_event USING btree (actor_id, id DESC) WHERE (actor_id IS NOT NULL);

CREATE INDEX audit_event_kind_idx ON public.audit_event USING btree (kind, id DESC);

CREATE INDEX audit_event_organization_id_idx ON public.audit_event USING btree (organization_id, id DESC) WHERE (organization_id IS NOT NULL);

CREATE INDEX blob_unfinished_idx ON public.blob USING btree (created_at) WHERE (sha256 IS NULL);

CREATE INDEX blog_post_author_id_idx ON public.blog_post USING btree (author_id) WHERE (author_id IS NOT NULL);

CREATE INDEX blog_post_created_at_idx ON public.blog_post USING btree (created_at DESC, id DESC);

CREATE INDEX blog_post_published_idx ON public.blog_post USING btree (published_at DESC, id DESC) WHERE (status = 'published'::text);

CREATE INDEX blog_post_status_idx ON public.blog_post USING btree (status, created_at DESC, id DESC);

CREATE INDEX blog_post_tag_tag_id_idx ON public.blog_post_tag USING btree (tag_id, post_id);

CREATE INDEX blog_tag_listed_idx ON public.blog_tag USING btree (lower(name), name);

CREATE INDEX blog_upload_created_at_idx ON public.blog_upload USING btree (created_at);

CREATE INDEX comms_send_created_at_idx ON public.comms_send USING btree (created_at);

CREATE INDEX comms_send_open_idx ON public.comms_send USING btree (job_id) WHERE (status = ANY (ARRAY['queued'::text, 'sending'::text, 'failed'::text]));

CREATE INDEX comms_send_owner_id_idx ON public.comms_send USING btree (owner_id, id) WHERE (owner_id IS NOT NULL);

CREATE UNIQUE INDEX comms_send_provider_id_key ON public.comms_send USING btree (channel, provider_id) WHERE (provider_id IS NOT NULL);

CREATE INDEX comms_send_recipient_idx ON public.comms_send USING btree (channel, (recipients[1]), requested_at) WHERE (provider_id IS NOT NULL);

CREATE INDEX comms_send_unknown_idx ON public.comms_send USING btree (id) WHERE (status = 'unknown'::text);

CREATE INDEX document_deleted_idx ON public.document USING btree (deleted_at) WHERE ((deleted_at IS NOT NULL) AND (collected_at IS NULL));

CREATE INDEX document_owner_id_idx ON public.document USING btree (owner_id, id DESC) WHERE (deleted_at IS NULL);

CREATE UNIQUE INDEX document_owner_id_sha256_key ON public.document USING btree (owner_id, sha256) NULLS NOT DISTINCT WHERE (deleted_at IS NULL);

CREATE INDEX document_search_idx ON public.document USING gin (search) WHERE (deleted_at IS NULL);

CREATE INDEX document_sha256_idx ON public.document USING btree (sha256);

CREATE UNIQUE INDEX document_supersedes_id_key ON public.document USING btree (supersedes_id) WHERE (deleted_at IS NULL);

CREATE INDEX document_tags_idx ON public.document USING gin (tags) WHERE (deleted_at IS NULL);

CREATE INDEX document_page_search_idx ON public.document_page USING gin (search);

CREATE INDEX idempotency_key_created_at_idx ON public.idempotency_key USING btree (created_at);

CREATE UNIQUE INDEX job_actor_live_key ON public.job USING btree (actor) WHERE ((actor IS NOT NULL) AND (status = ANY (ARRAY['sent'::text, 'running'::text])));

CREATE INDEX job_actor_mailbox_idx ON public.job USING btree (actor, ordinal) WHERE ((status = 'queued'::text) AND (actor IS NOT NULL));

CREATE INDEX job_failed_idx ON public.job USING btree (finished_at) WHERE (status = 'failed'::text);

CREATE INDEX job_finished_at_idx ON public.job USING btree (finished_at) WHERE (finished_at IS NOT NULL);

CREATE INDEX job_owner_id_idx ON public.job USING btree (owner_id, id) WHERE (owner_id IS NOT NULL);

CREATE UNIQUE INDEX job_retry_of_key ON public.job USING btree (retry_of) WHERE (retry_of IS NOT NULL);

CREATE INDEX job_running_idx ON public.job USING btree (lease_id) WHERE (status = 'running'::text);

CREATE INDEX job_staged_idx ON public.job USING btree (queue, lane, COALESCE(owner_id, 0), ordinal) WHERE ((status = 'queued'::text) AND (actor IS NULL));

CREATE INDEX job_waiting_idx ON public.job USING btree (queue, COALESCE(owner_id, 0), ordinal) WHERE (status = ANY (ARRAY['queued'::text, 'sent'::text]));

CREATE INDEX job_hold_lease_id_idx ON public.job_hold USING btree (lease_id);

CREATE INDEX job_hold_staged_idx ON public.job_hold USING btree (queue, lane, owner, upper(ordinals));

CREATE INDEX llm_current_chosen_by_idx ON public.llm_current USING btree (chosen_by);

CREATE INDEX llm_model_enabled_idx ON public.llm_model USING btree (vendor) WHERE (NOT disabled);

CREATE INDEX llm_model_released_on_idx ON public.llm_model USING btree (released_on DESC NULLS LAST, vendor, model_id);

CREATE INDEX login_failure_failed_at_idx ON public.login_failure USING btree (failed_at);

CREATE INDEX organization_invite_email_idx ON public.organization_invite USING btree (email) WHERE (status = 'pending'::text);

CREATE INDEX organization_invite_invited_by_idx ON public.organization_invite USING btree (invited_by) WHERE (invited_by IS NOT NULL);

CREATE INDEX organization_invite_organization_id_idx ON public.organization_invite USING btree (organization_id, id);

CREATE UNIQUE INDEX organization_invite_pending_key ON public.organization_invite USING btree (organization_id, email) WHERE (status = 'pending'::text);

CREATE INDEX organization_member_organization_id_idx ON public.organization_member USING btree (organization_id, id);

CREATE INDEX organization_member_owner_idx ON public.organization_member USING btree (organization_id) WHERE (role = 'owner'::text);

CREATE INDEX organization_member_user_id_idx ON public.organization_member USING btree (user_id, organization_id);

CREATE INDEX payment_dispute_provider_charge_id_idx ON public.payment_dispute USING btree (provider_charge_id);

CREATE INDEX payment_dispute_provider_payment_intent_id_idx ON public.payment_dispute USING btree (provider_payment_intent_id);

CREATE INDEX payment_dispute_status_idx ON public.payment_dispute USING btree (status, id DESC);

CREATE INDEX payment_dispute_transaction_id_idx ON public.payment_dispute USING btree (transaction_id);

CREATE INDEX payment_event_pending_idx ON public.payment_event USING btree (received_at) WHERE (applied_at IS NULL);

CREATE INDEX payment_event_received_at_idx ON public.payment_event USING btree (received_at);

CREATE INDEX payment_reference_transaction_id_idx ON public.payment_reference USING btree (transaction_id);

CREATE INDEX payment_subscription_customer_id_idx ON public.payment_subscription USING btree (customer_id, id DESC);

CREATE INDEX payment_subscription_status_idx ON public.payment_subscription USING btree (status, id DESC);

CREATE INDEX payment_transaction_charge_id_idx ON public.payment_transaction USING btree (charge_id) WHERE (charge_id IS NOT NULL);

CREATE INDEX payment_transaction_created_at_idx ON public.payment_transaction USING btree (created_at DESC, id DESC) WHERE shown;

CREATE INDEX payment_transaction_customer_id_idx ON public.payment_transaction USING btree (customer_id, created_at DESC, id DESC);

CREATE INDEX payment_transaction_reserved_idx ON public.payment_transaction USING btree (id) WHERE ((charge_id IS NOT NULL) AND (NOT shown));

CREATE INDEX payment_transaction_status_idx ON public.payment_transaction USING btree (status, created_at DESC, id DESC) WHERE shown;

CREATE INDEX rag_collection_deleted_idx ON public.rag_collection USING btree (id) WHERE (deleted_at IS NOT NULL);

CREATE UNIQUE INDEX rag_collection_name_key ON public.rag_collection USING btree (name) WHERE (deleted_at IS NULL);

CREATE UNIQUE INDEX rag_file_build_key ON public.rag_file USING btree (collection_id, source) WHERE (build_id IS NOT NULL);

CREATE INDEX rag_file_collection_id_idx ON public.rag_file USING btree (collection_id);

CREATE UNIQUE INDEX rag_file_source_key ON public.rag_file USING btree (collection_id, source) WHERE (build_id IS NULL);

CREATE INDEX refresh_token_expires_at_idx ON public.refresh_token USING btree (expires_at);

CREATE UNIQUE INDEX refresh_token_session_id_current_key ON public.refresh_token USING btree (session_id) WHERE (rotated_at IS NULL);

CREATE INDEX refresh_token_session_id_idx ON public.refresh_token USING btree (session_id);

CREATE INDEX request_limit_expires_at_idx ON public.request_limit USING btree (expires_at);

CREATE INDEX search_word_trigram_idx ON public.search_word USING gin (word gin_trgm_ops);

CREATE INDEX session_account_id_idx ON public.session USING btree (account_id);

CREATE INDEX voice_preview_used_at_idx ON public.voice_preview USING btree (used_at);

CREATE INDEX voice_settings_updated_by_idx ON public.voice_settings USING btree (updated_by);

create view job_event as
 SELECT job.id AS job_id,
    1 AS seq,
    'status'::text AS kind,
    '{"label": "", "total": null, "status": "running", "current": null}'::jsonb AS data,
    job.started_at AS created_at
   FROM job
  WHERE (job.attempt > 0)
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

CREATE OR REPLACE FUNCTION public.account_delete(id integer)
 RETURNS TABLE(email text, inherited json, deleted json)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
begin
  -- Organizations before accounts, as in every change; then those that it was added to before its row was locked.
  for pass in 1..2 loop
    perform from organization o where o.id in (
      select m.organization_id from organization_member m where m.user_id = account_delete.id)
    order by o.id for update;
    perform from account a where a.id = account_delete.id for update;
  end loop;
  with heir as (
    select distinct on (m.organization_id) m.id
    from organization_member own join organization_member m on m.organization_id = own.organization_id and m.id <> own.id
    where own.user_id = account_delete.id and own.role = 'owner' and not exists (
      select from organization_member other
      where other.organization_id = own.organization_id and other.role = 'owner' and other.id <> own.id)
    order by m.organization_id, array_position(array['admin', 'member'], m.role), m.joined_at, m.id
  ), promoted as (
    update organization_member m set role = 'owner' from heir where m.id = heir.id
    returning m.organization_id, m.user_id as heir_id
  )
  select coalesce(json_agg(p order by p.organization_id), '[]') into inherited from promoted p;
  with orphaned as (
    delete from organization o using organization_member own
    where own.organization_id = o.id and own.user_id = account_delete.id and own.role = 'owner' and not exists (
      select from organization_member other where other.organization_id = o.id and other.id <> own.id)
    returning o.id as organization_id, o.slug
  )
  select coalesce(json_agg(o order by o.organization_id), '[]') into deleted from orphaned o;
  return query
  with gone as (delete from account a where a.id = account_delete.id returning a.email)
  select gone.email, account_delete.inherited, account_delete.deleted from gone;
end $function$;

CREATE OR REPLACE FUNCTION public.account_json(a account)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (a).id, 'email', (a).email, 'full_name', (a).full_name, 'is_active', (a).is_active, 'is_verified', (a).is_verified, 'role', (a).role, 'last_login', iso((a).last_login), 'created_at', iso((a).created_at), 'updated_at', iso((a).updated_at));

CREATE OR REPLACE FUNCTION public.account_last_admin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform pg_advisory_xact_lock(7236501146);
  -- A statement of its own: it sees what the transaction has left that the lock waited for.
  if not exists (select from account where role = 'admin' and is_active) then
    raise exception 'The last active admin has to stay' using errcode = 'check_violation', constraint = 'account_last_admin';
  end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.actor_lock_key(actor text)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN hashtextextended(('millrace.actor:'::text || actor), (0)::bigint);

CREATE OR REPLACE FUNCTION public.ai_turn_settle(ended job)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  message uuid := (ended.payload ->> 'message_id')::uuid;
  text_seen text := case when ended.status = 'done' then ended.result ->> 'content' else ai_turn_text(ended.id) end;
  spent record;
begin
  select count(*) as attempts, coalesce(sum((u ->> 'input')::bigint), 0) as input, coalesce(sum((u ->> 'cached')::bigint), 0) as cached,
    coalesce(sum((u ->> 'output')::bigint), 0) as output, coalesce(sum((u ->> 'reasoning')::bigint), 0) as reasoning,
    case when count(*) = count(u ->> 'cost') then sum((u ->> 'cost')::numeric) end as cost,
    coalesce(bool_or((u ->> 'estimated')::boolean), false) as estimated,
    (array_agg(u ->> 'provider' order by seq desc))[1] as provider, (array_agg(u ->> 'model' order by seq desc))[1] as model
  into spent from (select e.seq, e.data as u from job_event e where e.job_id = ended.id and e.kind = 'usage') said;

  if ended.attempt > 0 then
    insert into ai_usage (user_id, owner_id, conversation_id, message_id, action, vendor, model, input_tokens, cached_tokens,
      output_tokens, reasoning_tokens, cost, estimated, success)
    values (ended.payload ->> 'user_id', (select id from account where id = (ended.payload ->> 'owner_id')::integer),
      (ended.payload ->> 'conversation_id')::uuid, message, 'chat', coalesce(spent.provider, ended.payload ->> 'provider'),
      coalesce(spent.model, ended.payload ->> 'model'), spent.input, spent.cached,
      spent.output + case when spent.attempts = 0 then (length(text_seen) + 3) / 4 else 0 end, spent.reasoning,
      case when spent.attempts > 0 then spent.cost end, spent.estimated or spent.attempts = 0, ended.status = 'done')
    on conflict on constraint ai_usage_message_id_key do nothing;
  end if;

  update ai_message set content = text_seen, settled_at = now(), response_ms = (ended.result ->> 'response_time_ms')::float8,
    status = case ended.status when 'done' then 'complete' when 'cancelled' then 'stopped' else 'failed' end,
    error_detail = ended.error_detail, provider = coalesce(spent.provider, provider), model = coalesce(spent.model, model)
  where id = message and status = 'pending';
  if found then
    update ai_conversation set updated_at = now(),
      unscored_since = case when ended.status = 'done' then now() else unscored_since end,
      provider = case when ended.status = 'done' then spent.provider else provider end,
      model = case when ended.status = 'done' then spent.model else model end,
      last_response_ms = case when ended.status = 'done' then (ended.result ->> 'response_time_ms')::float8 else last_response_ms end
    where id = (ended.payload ->> 'conversation_id')::uuid;
  end if;
end $function$;

CREATE OR REPLACE FUNCTION public.ai_turn_text(job_id uuid)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  select coalesce(string_agg(e.data ->> 'content', '' order by e.seq), '') from job_event e
  where e.job_id = ai_turn_text.job_id and e.kind = 'chunk' and e.seq > coalesce((
    select max(r.seq) from job_event r where r.job_id = ai_turn_text.job_id and r.kind = 'restart'), 0)
$function$;

CREATE OR REPLACE FUNCTION public.audit_append_only()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'The audit trail is append-only' using errcode = 'insufficient_privilege';
end $function$;

CREATE OR REPLACE FUNCTION public.blog_count_add(given text, more bigint)
 RETURNS void
 LANGUAGE sql
AS $function$
  with free as (
    select id from blog_post_count where status = given order by id limit 100 for update skip locked
  ), folded as (
    delete from blog_post_count c using free where c.id = free.id returning c.posts
  )
  insert into blog_post_count (status, posts) select given, more + coalesce(sum(posts), 0) from folded
$function$;

CREATE OR REPLACE FUNCTION public.blog_free_name(slug text)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
  free text := left(slug, 80);
  n integer := 1;
begin
  while exists (select from blog_tag where name = free) loop
    n := n + 1;
    free := left(slug, 70) || ' ' || n;
  end loop;
  return free;
end $function$;

CREATE OR REPLACE FUNCTION public.blog_post_json(id integer, title text, slug text, excerpt text, content text, status text, author_id integer, author_name text, created_at timestamp with time zone, updated_at timestamp with time zone, published_at timestamp with time zone, seo_title text, seo_description text, hero_image_url text, tags text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select row_to_json(post)::text from (
    select id, title, slug, excerpt, content, status, author_id, author_name, iso(created_at) as created_at,
      iso(updated_at) as updated_at, iso(published_at) as published_at, seo_title, seo_description, hero_image_url,
      array(select t from json_to_recordset(tags::json) as t(id integer, name text, slug text, created_at text)) as tags) post
$function$;

CREATE OR REPLACE FUNCTION public.blog_post_moved()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform blog_count_add(old.status, -1), blog_count_add(new.status, 1);
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.blog_post_tags_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform blog_tags_shown(array(select distinct post_id from changed));
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.blog_posts_added()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform blog_count_add(status, count(*)) from changed group by status;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.blog_posts_removed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform blog_count_add(status, -count(*)) from changed group by status;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.blog_tag_json(t blog_tag)
 RETURNS json
 LANGUAGE sql
 STABLE
AS $function$
  select json_build_object('id', t.id, 'name', t.name, 'slug', t.slug, 'created_at', iso(t.created_at))
$function$;

CREATE OR REPLACE FUNCTION public.blog_tags_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform blog_tags_shown(array(select distinct post_id from blog_post_tag where tag_id in (select id from changed)));
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.blog_tags_shown(posts integer[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  perform from blog_post where id = any(posts) order by id for update;
  update blog_post p set tags = now.tags
  from (
    select given.id, coalesce(json_agg(blog_tag_json(t) order by lower(t.name), t.name) filter (where t.id is not null), '[]')::text as tags
    from unnest(posts) as given(id)
    left join blog_post_tag pt on pt.post_id = given.id left join blog_tag t on t.id = pt.tag_id group by given.id
  ) now
  where p.id = now.id and p.tags <> now.tags;
end $function$;

CREATE OR REPLACE FUNCTION public.document_fields(id integer, title text, kind text, media_type text, byte_size bigint, sha256 bytea, page_count integer, document_date date, received_at timestamp with time zone, source text, channel text, note text, protected boolean, supersedes_id integer, tags text[], created_at timestamp with time zone, updated_at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select left(row_to_json(fields)::text, -1) from (
    select id, title, kind, media_type, byte_size, encode(sha256, 'hex') as sha256, page_count, document_date,
      iso(received_at) as received_at, source, channel, note, protected, supersedes_id, tags, iso(created_at) as created_at,
      iso(updated_at) as updated_at) fields
$function$;

CREATE OR REPLACE PROCEDURE public.document_pages_store(INOUT stored integer, IN p_job uuid, IN p_attempt integer, IN p_document integer, IN numbers integer[], IN statuses text[], IN methods text[], IN models text[], IN details text[], IN texts text[], IN images bytea[], IN widths integer[], IN heights integer[], IN givings_up boolean[])
 LANGUAGE plpgsql
AS $procedure$
declare
  last constant integer := cardinality(numbers);
  vectors constant tsvector[] := array(select page_vector(text) from unnest(texts) with ordinality given(text, n) order by n);
begin
  perform search_words_of(vectors);
  for i in 1 .. last loop
    if i < last then
      perform set_config('synchronous_commit', 'off', true);
    end if;
    -- Held until the commit: a take-over waits for it.
    exit when job_fence(p_job, p_attempt) is not true;
    insert into document_page (document_id, page_number, status, method, model, detail, text, search, image, width, height,
      job_id, given_up)
    values (p_document, numbers[i], statuses[i], methods[i], models[i], details[i], texts[i], vectors[i],
      nullif(images[i], ''), widths[i], heights[i], p_job, givings_up[i])
    on conflict (document_id, page_number) do update set
      status = excluded.status, method = excluded.method, model = excluded.model, detail = excluded.detail,
      text = excluded.text, search = excluded.search, image = excluded.image, width = excluded.width,
      height = excluded.height, job_id = excluded.job_id, given_up = excluded.given_up, updated_at = now();
    commit;
    stored := i;
  end loop;
end
$procedure$;

CREATE OR REPLACE FUNCTION public.document_supersedes()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  -- One change of an owner's at a time, or two could close a circle together.
  perform pg_advisory_xact_lock(hashtextextended('millrace.supersede:' || coalesce(new.owner_id, 0), 0));
  if not exists (select from document target where target.id = new.supersedes_id and target.deleted_at is null
      and target.owner_id is not distinct from new.owner_id) then
    raise exception 'Superseding a document that is not there'
      using errcode = 'check_violation', constraint = 'document_supersedes_missing';
  end if;
  if exists (
    with recursive older as (
      select new.supersedes_id as id union select document.supersedes_id from document join older on document.id = older.id
    ) select from older where id = new.id) then
    raise exception 'A circle of supersession'
      using errcode = 'check_violation', constraint = 'document_supersedes_circle';
  end if;
  return new;
end $function$;

CREATE OR REPLACE FUNCTION public.document_vector(title text, note text, tags text[])
 RETURNS tsvector
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select setweight(to_tsvector('folded', title), 'A') || setweight(to_tsvector('folded', array_to_string(tags, ' ')), 'A')
    || setweight(to_tsvector('folded', coalesce(note, '')), 'B')
$function$;

CREATE OR REPLACE FUNCTION public.idempotency_claim(scope text, key text, fingerprint bytea, lock interval)
 RETURNS TABLE(fresh boolean, same boolean, status smallint, headers jsonb, body text, job_id uuid)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
begin
  insert into idempotency_key as k (scope, key, fingerprint, locked_until)
  values (idempotency_claim.scope, idempotency_claim.key, idempotency_claim.fingerprint, now() + lock)
  on conflict on constraint idempotency_key_pkey do update
    set fingerprint = excluded.fingerprint, locked_until = excluded.locked_until, created_at = now(),
      status = null, headers = null, body = null, job_id = null
    where k.created_at < now() - interval '24 hours'
      or (k.status is null and k.job_id is null and k.locked_until < now());
  fresh := found;
  -- A statement of its own: it sees what the transaction has left that the first one waited for.
  return query select fresh, k.fingerprint = idempotency_claim.fingerprint, k.status, k.headers, k.body, k.job_id
    from idempotency_key k where k.scope = idempotency_claim.scope and k.key = idempotency_claim.key;
end $function$;

CREATE OR REPLACE FUNCTION public.invite_address_lock(email text)
 RETURNS void
 LANGUAGE sql
AS $function$ select pg_advisory_xact_lock(hashtextextended('millrace.invite:' || email, 0)) $function$;

CREATE OR REPLACE FUNCTION public.invite_json(i organization_invite)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (i).id, 'organization_id', (i).organization_id, 'email', (i).email, 'role', (i).role, 'status', (i).status, 'created_at', iso((i).created_at), 'expires_at', iso((i).expires_at));

CREATE OR REPLACE FUNCTION public.invites_accept(account_id integer, address text)
 RETURNS TABLE(invite_id integer, organization_id integer, role text)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
begin
  perform invite_address_lock(address);
  perform from organization o where o.id in (
    select i.organization_id from organization_invite i where i.email = address and i.status = 'pending')
  order by o.id for update;
  return query
  with accepted as (
    update organization_invite i set status = 'accepted', accepted_at = now()
    where i.email = address and i.status = 'pending' and i.expires_at > now()
    returning i.id, i.organization_id, i.role
  ), joined as (
    insert into organization_member (organization_id, user_id, role)
    select a.organization_id, invites_accept.account_id, a.role from accepted a
  )
  select a.id, a.organization_id, a.role from accepted a order by a.id;
end $function$;

CREATE OR REPLACE FUNCTION public.iso(at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN to_char((at AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'::text);

CREATE OR REPLACE FUNCTION public.job_begin(ids uuid[], waits boolean)
 RETURNS SETOF uuid
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
#variable_conflict use_column
declare
  locked uuid[];
begin
  -- A take under way has its rows locked: whether it holds them is seen after it.
  if waits then
    select array_agg(id) into locked from (
      select id from job where id = any(ids) and job.status || '' = 'queued' and job.actor is null order by id for update) mine;
  else
    select array_agg(id) into locked from (
      select id from job where id = any(ids) and job.status || '' = 'queued' and job.actor is null for update skip locked) mine;
    return query select id from job
      where id = any(ids) and job.status || '' = 'queued' and job.actor is null and id <> all(coalesce(locked, '{}'));
  end if;
  update job set status = 'running', lease_id = h.lease_id, attempt = job.attempt + 1, reported = 0, tries = job.tries + 1,
    started_at = h.taken_at, seq = job.seq + 1
  from unnest(locked) as given(id) join job staged on staged.id = given.id
  cross join lateral (
    select * from job_hold where job_hold.queue = staged.queue and job_hold.lane = staged.lane
      and job_hold.owner = coalesce(staged.owner_id, 0) and upper(job_hold.ordinals) > staged.ordinal
      and job_hold.ordinals @> staged.ordinal) h
  where job.id = given.id;
end $function$;

CREATE OR REPLACE FUNCTION public.job_cancel(job_id uuid)
 RETURNS boolean
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
#variable_conflict use_column
declare
  found_actor text;
  cancelled_actor text;
  settled boolean;
begin
  select actor into found_actor from job where id = job_cancel.job_id;
  if not found then return false; end if;
  if found_actor is not null then
    perform pg_advisory_xact_lock(actor_lock_key(found_actor));
  else
    perform job_begin(array[job_cancel.job_id], true);
  end if;
  with moved as (
    update job set
      status = case when status = 'running' then status else 'cancelled' end,
      cancel_requested_at = coalesce(cancel_requested_at, now()),
      finished_at = case when status = 'running' then null else now() end,
      delivery = delivery + case when status = 'running' then 0 else 1 end,
      seq = seq + case when status = 'running' then 0 else 1 end
    where id = job_cancel.job_id and status in ('queued', 'sent', 'running')
    returning status, actor, settle
  )
  select actor, settle is not null into cancelled_actor, settled from moved where status = 'cancelled';
  if settled then
    perform job_settle(array[job_cancel.job_id]);
  end if;
  if cancelled_actor is not null then
    perform job_send(job_send_heads(array[cancelled_actor]));
  end if;
  return true;
end $function$;

CREATE OR REPLACE FUNCTION public.job_claim(lease uuid, ids uuid[], deliveries integer[])
 RETURNS TABLE(id uuid, delivery integer, name text, payload jsonb, attempt integer, tries integer, max_tries integer, owner_id integer, actor text, request_id text, interruptions integer)
 LANGUAGE sql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
  with claimed as (
    update job set status = 'running', lease_id = lease, attempt = job.attempt + 1, reported = 0,
      tries = job.tries + case when job.status = 'sent' then 1 else 0 end,
      started_at = coalesce(job.started_at, now()), seq = job.seq + 1
    from unnest(ids, deliveries) as wanted(id, delivery)
    where job.id = wanted.id and job.delivery = wanted.delivery
      and (job.status || '' = 'sent' or (job.status || '' = 'running' and job.lease_id = lease))
    returning job.*
  ), event as (
    insert into job_event_row (job_id, seq, kind, data)
    select claimed.id, claimed.seq, 'status', jsonb_build_object('status', 'running', 'label', claimed.label,
      'current', claimed.progress_current, 'total', claimed.progress_total) from claimed where claimed.attempt > 1
  )
  select id, delivery, name, payload, attempt, tries, max_tries, owner_id, actor, request_id, interruptions from claimed
$function$;

CREATE OR REPLACE FUNCTION public.job_done(ids uuid[], attempts integer[], results jsonb, held integer[], since timestamp with time zone[], actors text[])
 RETURNS SETOF uuid
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
#variable_conflict use_column
declare
  ended uuid[];
  idle text[];
  settled uuid[];
begin
  if cardinality(actors) > 0 then
    perform pg_advisory_xact_lock(key) from (
      select distinct actor_lock_key(actor) as key from unnest(actors) actor order by 1) locks;
  end if;

  with moved as (
    update job set status = 'done', result = nullif(e.result, 'null'), finished_at = now(), lease_id = null,
      attempt = e.attempt, delivery = job.delivery + 1,
      -- Of one that is held, what it began with is said only now.
      started_at = case when job.lease_id is null then since[e.held] else job.started_at end,
      seq = job.seq + case when job.lease_id is null then 2 else 1 end,
      tries = job.tries + case when job.lease_id is null then 1 else 0 end
    from rows from (unnest(ids), unnest(attempts), jsonb_array_elements(results), unnest(held))
      as e(id, attempt, result, held)
    where job.id = e.id and (job.attempt = e.attempt and job.lease_id is not null
      or e.held > 0 and job.attempt = e.attempt - 1 and job.status || '' = 'queued' and job.actor is null)
    returning job.id, job.actor, job.settle
  )
  select coalesce(array_agg(id), '{}'), array_agg(actor) filter (where actor is not null),
    array_agg(id) filter (where settle is not null)
  into ended, idle, settled from moved;

  if idle is not null then
    if not idle <@ actors then
      raise exception 'job_done was not told of all actors';
    end if;
    perform job_send(job_send_heads(idle));
  end if;
  if settled is not null then
    perform job_settle(settled);
  end if;
  if cardinality(ended) < cardinality(ids) then
    return query select id from unnest(ids) id where id <> all(ended);
  end if;
end $function$;

CREATE OR REPLACE FUNCTION public.job_enqueue(specs jsonb)
 RETURNS TABLE(spec_ordinal bigint, job_id uuid, joined boolean)
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
#variable_conflict use_column
declare
  spec record;
  live uuid;
  joins uuid;
  dying boolean;
  send uuid[] := '{}';
begin
  -- Always in key order, here and in job_finish, so that two transactions never wait for each other.
  perform pg_advisory_xact_lock(key) from (
    select distinct actor_lock_key(s ->> 'actor') as key from jsonb_array_elements(specs) s
    where s ->> 'actor' is not null order by 1) locks;

  with given as (
    select * from rows from (jsonb_to_recordset(specs) as (id uuid, name text, queue text, owner_id integer, actor text,
      payload jsonb, max_tries integer, delay_ms float8, request_id text, lane text, front integer))
      with ordinality as s(id, name, queue, owner_id, actor, payload, max_tries, delay_ms, request_id, lane, front, n)
    where s.actor is null
  ), numbered as (
    select given.*, row_number() over (partition by queue, coalesce(owner_id, 0), delay_ms is null, front is null order by n) as nth
    from given
  ), counted as (
    -- What an owner has waiting is counted once, for the first of its jobs.
    select numbered.*, case when nth = 1 and delay_ms is null and front is not null then (
      select count(*) from (
        select from job where job.queue = numbered.queue and coalesce(job.owner_id, 0) = coalesce(numbered.owner_id, 0)
          and job.status in ('queued', 'sent') and job.ordinal > (select last_value - 10000 from job_ordinal_seq)
        order by job.ordinal desc limit numbered.front) waits) end as waiting
    from numbered
  ), placed as (
    select counted.*, nth + max(waiting) over (partition by queue, coalesce(owner_id, 0), delay_ms is null, front is null)
      > front as behind
    from counted
  )
  insert into job (id, name, queue, owner_id, payload, status, max_tries, delivery, run_at, request_id, lane)
  select p.id, p.name, p.queue, p.owner_id, p.payload, case when behind then 'queued' else 'sent' end, p.max_tries,
    case when behind then 0 else 1 end, now() + make_interval(secs => coalesce(p.delay_ms, 0) / 1000), p.request_id, coalesce(p.lane, 'io')
  from placed p order by p.n;

  for spec in
    select e.value as s, e.ordinality as n from jsonb_array_elements(specs) with ordinality e
    where e.value ->> 'actor' is not null order by e.ordinality
  loop
    select id, cancel_requested_at is not null into live, dying
    from job where actor = spec.s ->> 'actor' and status in ('sent', 'running');
    if live is not null and spec.s ->> 'when_busy' = 'join' then
      select id into joins from job
      where id = live and not dying and (spec.s -> 'joins' is null or payload @> (spec.s -> 'joins'));
      if not found and spec.s -> 'joins' is not null then
        select id into joins from job
        where actor = spec.s ->> 'actor' and status = 'queued' and payload @> (spec.s -> 'joins') order by ordinal limit 1;
      end if;
      if found then
        spec_ordinal := spec.n; job_id := joins; joined := true;
        return next;
        continue;
      end if;
    end if;
    if spec.s ->> 'settle' is not null and to_regprocedure(format('%I(job)', spec.s ->> 'settle')) is null then
      raise exception 'There is no function %(job) to settle a job of %', spec.s ->> 'settle', spec.s ->> 'name';
    end if;
    insert into job (id, name, queue, owner_id, actor, settle, payload, status, max_tries, delivery, run_at, request_id, lane)
    values ((spec.s ->> 'id')::uuid, spec.s ->> 'name', spec.s ->> 'queue', (spec.s ->> 'owner_id')::integer,
      spec.s ->> 'actor', spec.s ->> 'settle', spec.s -> 'payload', case when live is null then 'sent' else 'queued' end,
      (spec.s ->> 'max_tries')::integer, case when live is null then 1 else 0 end,
      now() + make_interval(secs => coalesce((spec.s ->> 'delay_ms')::float8, 0) / 1000), spec.s ->> 'request_id', coalesce(spec.s ->> 'lane', 'io'));
    spec_ordinal := spec.n; job_id := (spec.s ->> 'id')::uuid; joined := false;
    return next;
  end loop;

  select coalesce(array_agg(id), '{}') into send from job
  where job.id = any(array(select (s ->> 'id')::uuid from jsonb_array_elements(specs) s)) and job.status || '' = 'sent';
  perform job_send(send, coalesce((select max((s ->> 'together')::integer) from jsonb_array_elements(specs) s), 1));

  return query select e.ordinality, (e.value ->> 'id')::uuid, false
    from jsonb_array_elements(specs) with ordinality e where e.value ->> 'actor' is null;
end $function$;

CREATE OR REPLACE FUNCTION public.job_fence(job_id uuid, of_attempt integer)
 RETURNS boolean
 LANGUAGE sql
AS $function$
  select true from job where id = job_id
    and (attempt = of_attempt and status = 'running'
      or attempt = 0 and of_attempt = 1 and status = 'queued' and actor is null) for share
$function$;

CREATE OR REPLACE FUNCTION public.job_finish(entries jsonb, suspect integer, most integer)
 RETURNS SETOF uuid
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
#variable_conflict use_column
declare
  ended uuid[];
  resend uuid[];
  idle text[];
  settled uuid[];
begin
  perform pg_advisory_xact_lock(key) from (
    select distinct actor_lock_key(job.actor) as key
    from jsonb_to_recordset(entries) as e(id uuid) join job on job.id = e.id
    where job.actor is not null order by 1) locks;

  with entry as (
    select * from jsonb_to_recordset(entries)
      as e(id uuid, attempt integer, outcome text, result jsonb, code text, detail text, delay_ms integer)
  ), moved as (
    -- Each expression sees the row as it is under its lock: a cancel request that commits while this waits counts.
    update job set
      status = case
        when e.outcome not in ('retry', 'release', 'interrupted', 'crashed') then e.outcome
        when job.cancel_requested_at is not null then 'cancelled'
        when e.outcome = 'crashed' and job.interruptions + 1 >= most then 'failed'
        else 'sent' end,
      lease_id = null, seq = job.seq + 1, delivery = job.delivery + 1,
      result = case when e.outcome = 'done' then e.result end,
      error_code = case
        when e.outcome = 'failed' then coalesce(e.code, 'internal')
        when e.outcome = 'crashed' and job.cancel_requested_at is null and job.interruptions + 1 >= most then e.code end,
      error_detail = case
        when e.outcome = 'failed' then e.detail
        when e.outcome = 'crashed' and job.cancel_requested_at is null and job.interruptions + 1 >= most then e.detail end,
      finished_at = case
        when e.outcome in ('retry', 'release', 'interrupted', 'crashed') and job.cancel_requested_at is null
          and not (e.outcome = 'crashed' and job.interruptions + 1 >= most) then null
        else now() end,
      tries = case when e.outcome in ('release', 'interrupted', 'crashed') then job.tries - 1 else job.tries end,
      interruptions = case e.outcome when 'interrupted' then greatest(job.interruptions, least(job.interruptions + 1, suspect))
        when 'crashed' then job.interruptions + 1 else job.interruptions end,
      run_at = case when e.outcome in ('retry', 'release', 'interrupted', 'crashed')
        then now() + make_interval(secs => coalesce(e.delay_ms, 0) / 1000.0) else job.run_at end
    from entry e where job.id = e.id and job.attempt = e.attempt and job.lease_id is not null
    returning job.id, job.seq, job.status, job.actor, job.label, job.progress_current, job.progress_total, job.settle
  ), event as (
    insert into job_event_row (job_id, seq, kind, data)
    select moved.id, moved.seq, 'status', jsonb_build_object('status', 'queued', 'label', moved.label,
      'current', moved.progress_current, 'total', moved.progress_total) from moved where moved.status = 'sent'
  )
  select coalesce(array_agg(id), '{}'),
    coalesce(array_agg(id) filter (where status = 'sent'), '{}'),
    coalesce(array_agg(actor) filter (where status <> 'sent' and actor is not null), '{}'),
    array_agg(id) filter (where status <> 'sent' and settle is not null)
  into ended, resend, idle, settled from moved;

  if settled is not null then
    perform job_settle(settled);
  end if;

  if cardinality(idle) > 0 then
    resend := resend || job_send_heads(idle);
  end if;
  perform job_send(resend);
  return query select unnest(ended);
end $function$;

CREATE OR REPLACE FUNCTION public.job_gone()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  delete from job_event_row e using gone where e.job_id = gone.id;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.job_pick(of_queue text, of_lane text, most integer, after_owner integer, owners integer[], floors bigint[])
 RETURNS job[]
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_bitmapscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  picked job[];
  others int8multirange;
begin
  with line as (
    select known.owner, known.floor, holds.held from unnest(owners, floors) as known(owner, floor)
    cross join lateral (
      select from job where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) = known.owner and job.ordinal > known.floor
      order by job.ordinal limit 1) first
    cross join lateral (
      select range_agg(h.ordinals) as held from job_hold h
      where h.queue = of_queue and h.lane = of_lane and h.owner = known.owner and upper(h.ordinals) > known.floor) holds
    where known.owner > after_owner and (holds.held is null or exists (
      select from job where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) = known.owner and job.ordinal > known.floor and not job.ordinal <@ holds.held
      order by job.ordinal limit 1))
    order by known.owner limit 100
  ), share as (
    select line.*, greatest(1, (most + count(*) over () - 1) / count(*) over ()) as part from line
  )
  select array_agg(locked.job) into picked from (
    select staged.job from share cross join lateral (
      select job from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) = share.owner and job.ordinal > share.floor
        and (share.held is null or not job.ordinal <@ share.held)
      order by job.ordinal limit share.part for update skip locked) staged
    limit most) locked;
  if picked is null then return null; end if;

  -- A take that was committed after the look above and before a lock has left no trace in the row. This look sees its hold,
  -- since it comes after all locks.
  select range_agg(h.ordinals) into others from job_hold h
  where h.queue = of_queue and h.lane = of_lane
    and h.owner in (select distinct coalesce(p.owner_id, 0) from unnest(picked) p)
    and upper(h.ordinals) > (select min(p.ordinal) from unnest(picked) p);
  if others is not null then
    select array_agg(p) into picked from unnest(picked) p where not p.ordinal <@ others;
  end if;
  return picked;
end $function$;

CREATE OR REPLACE FUNCTION public.job_progress(entries jsonb)
 RETURNS SETOF uuid
 LANGUAGE sql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
  with said as (
    select job.id, max(e.attempt) as attempt, max(e.n) as n, count(*)::integer as events,
      array_agg(e.kind order by e.n) as kinds, array_agg(e.data order by e.n) as list,
      (array_agg(e.data order by e.n desc) filter (where e.kind = 'status'))[1] as data
    from jsonb_to_recordset(entries) as e(id uuid, attempt integer, n integer, kind text, data jsonb)
    join job on job.id = e.id and job.attempt = e.attempt and job.lease_id is not null and e.n > job.reported
    group by job.id
  ), moved as (
    update job set seq = job.seq + said.events, reported = said.n,
      label = case when said.data is null then job.label else coalesce(said.data ->> 'label', '') end,
      progress_current = case when said.data is null then job.progress_current else (said.data ->> 'current')::integer end,
      progress_total = case when said.data is null then job.progress_total else (said.data ->> 'total')::integer end
    from said
    where job.id = said.id and job.attempt = said.attempt and job.lease_id is not null and said.n > job.reported
    returning job.id, job.seq - said.events as base, said.kinds, said.list
  ), event as (
    insert into job_event_row (job_id, seq, kind, data)
    select moved.id, moved.base + e.ordinal, e.kind, e.data
    from moved cross join lateral unnest(moved.kinds, moved.list) with ordinality as e(kind, data, ordinal)
  )
  select id from moved
  union
  -- Said before, and the answer lost with its connection: the attempt is no less the running one.
  select job.id from jsonb_to_recordset(entries) as e(id uuid, attempt integer, n integer)
  join job on job.id = e.id and job.attempt = e.attempt and job.lease_id is not null and e.n <= job.reported
$function$;

CREATE OR REPLACE FUNCTION public.job_pull(lease uuid, of_queue text, of_lane text, most integer, after_owner integer, owners integer[], floors bigint[], others boolean, hold_from integer, spent bigint[])
 RETURNS TABLE(hold bigint, held_at timestamp with time zone, jobs text)
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_bitmapscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  picked job[];
begin
  if cardinality(spent) > 0 then
    delete from job_hold where id = any(spent);
  end if;
  if others then
    select owners || o.unknown, floors || o.beyond into owners, floors
    from job_unknown_owners(of_queue, of_lane, after_owner, owners) o;
  end if;
  picked := job_pick(of_queue, of_lane, most, after_owner, owners, floors);
  if picked is null then return; end if;

  if cardinality(picked) >= hold_from * (select count(distinct coalesce(p.owner_id, 0)) from unnest(picked) p) then
    return query
    with mine as (
      select coalesce(p.owner_id, 0) as owner, range_agg(int8range(p.ordinal, p.ordinal, '[]')) as ordinals,
        json_agg(json_build_array(p.id, p.ordinal, 1, 1, p.max_tries, 0, coalesce(p.owner_id, 0), p.name, p.request_id,
          p.payload::text) order by p.ordinal)::text as jobs
      from unnest(picked) p group by 1
    ), held as (
      insert into job_hold (lease_id, queue, lane, owner, ordinals)
      select lease, of_queue, of_lane, owner, ordinals from mine returning id, owner, taken_at
    )
    select held.id, held.taken_at, mine.jobs from mine join held on held.owner = mine.owner;
  else
    return query
    with taken as (
      update job set status = 'running', lease_id = lease, attempt = job.attempt + 1, reported = 0, tries = job.tries + 1,
        started_at = coalesce(job.started_at, now()), seq = job.seq + 1
      from unnest(picked) p where job.id = p.id and job.status || '' = 'queued'
      returning job.*
    )
    select null::bigint, null::timestamptz, json_agg(json_build_array(t.id, t.ordinal, t.attempt, t.tries, t.max_tries,
      t.delivery, coalesce(t.owner_id, 0), t.name, t.request_id, t.payload::text) order by t.ordinal)::text
    from taken t having count(*) > 0;
  end if;
end $function$;

CREATE OR REPLACE FUNCTION public.job_recover(grace interval, suspect integer, most integer)
 RETURNS SETOF uuid
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
#variable_conflict use_column
declare
  dead_pools text[];
  orphans bigint[];
  lost jsonb;
begin
  if now() - pg_postmaster_start_time() < grace then return; end if;
  if not exists (select from worker_lease where expires_at < now())
     and not exists (select from job where status = 'running'
       and not exists (select from worker_lease where worker_lease.id = job.lease_id))
     and not exists (select from job_hold h where not exists (select from worker_lease where worker_lease.id = h.lease_id)) then
    return;
  end if;
  with dead as (delete from worker_lease where expires_at < now() returning pool_ids)
  select coalesce(array_agg(pool), '{}') into dead_pools from dead, unnest(pool_ids) pool;
  if cardinality(dead_pools) > 0 then
    perform graphile_worker.force_unlock_workers(dead_pools);
  end if;
  select array_agg(id) into orphans from (
    select h.id from job_hold h where not exists (select from worker_lease where worker_lease.id = h.lease_id)
    for update skip locked) h;
  if orphans is not null then
    perform job_begin(array(
      select job.id from job_hold h cross join lateral unnest(h.ordinals) part
      cross join lateral (
        select id from job where job.queue = h.queue and job.lane = h.lane and job.status = 'queued' and job.actor is null
          and coalesce(job.owner_id, 0) = h.owner and job.ordinal >= lower(part) and job.ordinal < upper(part)) job
      where h.id = any(orphans)), true);
    delete from job_hold where id = any(orphans);
  end if;
  select jsonb_agg(jsonb_build_object('id', id, 'attempt', attempt, 'outcome', 'interrupted')) into lost
  from job where status = 'running' and not exists (select from worker_lease where worker_lease.id = job.lease_id);
  if lost is not null then
    return query select job_finish(lost, suspect, most);
  end if;
end $function$;

CREATE OR REPLACE FUNCTION public.job_repair(patience interval)
 RETURNS SETOF uuid
 LANGUAGE plpgsql
AS $function$
declare
  lost uuid[];
  idle text[];
begin
  -- One at a time: all would find the same.
  if not pg_try_advisory_xact_lock(7236501147) then return; end if;

  perform graphile_worker.force_unlock_workers(array_agg(locked_by)) from (
    select distinct locked_by from graphile_worker._private_jobs
    where locked_by is not null and locked_at < now() - patience
      and not exists (select from worker_lease where locked_by = any(pool_ids))) orphaned
  having count(*) > 0;

  with due as (
    select id, name, delivery from job where status = 'sent' and greatest(created_at, run_at) < now() - patience
  ), carried as (
    select one ->> 0 as id, (one ->> 1)::integer as delivery
    from graphile_worker._private_jobs queued join graphile_worker._private_tasks task on task.id = queued.task_id
    cross join lateral json_array_elements(coalesce(queued.payload -> 'jobs',
      json_build_array(json_build_array(queued.payload -> 'id', queued.payload -> 'delivery')))) one
    -- Others may have work of their own in the same queue.
    where task.identifier in (select name from due)
  ), missing as (
    select id::text, delivery from due except select id, delivery from carried
  ), moved as (
    -- One that was claimed meanwhile is no longer `sent`.
    update job set delivery = job.delivery + 1 from missing
    where job.id = missing.id::uuid and job.delivery = missing.delivery and job.status = 'sent'
    returning job.id
  )
  select coalesce(array_agg(id), '{}') into lost from moved;

  -- From one actor to the next by the index, however many messages each has.
  with recursive mailbox as (
    (select actor from job where status = 'queued' and actor is not null order by actor limit 1)
    union all
    select (select job.actor from job where status = 'queued' and job.actor > mailbox.actor order by job.actor limit 1)
    from mailbox where mailbox.actor is not null
  )
  select array_agg(actor) into idle from mailbox
  where actor is not null and not exists (
    select from job live where live.actor = mailbox.actor and live.status in ('sent', 'running'));
  if idle is not null then
    perform pg_advisory_xact_lock(key) from (
      select distinct actor_lock_key(actor) as key from unnest(idle) actor order by 1) locks;
    -- Another look, by a statement of its own: what the locks waited for counts.
    lost := lost || job_send_heads(idle);
  end if;

  perform job_send(lost);
  return query select unnest(lost);
end $function$;

CREATE OR REPLACE FUNCTION public.job_running(lease uuid)
 RETURNS json
 LANGUAGE sql
 STABLE
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
  select coalesce(json_agg(json_build_object('id', job.id, 'attempt', job.attempt,
    'cancel', job.cancel_requested_at is not null)), '[]') from job
  where job.lease_id = lease and job.status = 'running'
$function$;

CREATE OR REPLACE FUNCTION public.job_running_of(lease uuid, ids uuid[])
 RETURNS json
 LANGUAGE sql
 STABLE
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
  select coalesce(json_agg(json_build_object('id', job.id, 'attempt', job.attempt,
    'cancel', job.cancel_requested_at is not null)), '[]') from job
  where job.id = any(ids) and job.lease_id = lease and job.status || '' = 'running'
$function$;

CREATE OR REPLACE FUNCTION public.job_send(ids uuid[], together integer DEFAULT 1)
 RETURNS void
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
begin
  if cardinality(ids) = 0 then return; end if;
  perform graphile_worker.add_jobs(array_agg((name, payload, null, run_at, 32000, null, null, null)::graphile_worker.job_spec
    order by first))
  from (
    select name, run_at, min(ordinal) as first, case when count(*) = 1
      then json_build_object('id', (array_agg(id))[1], 'delivery', min(delivery))
      else json_build_object('jobs', json_agg(json_build_array(id, delivery) order by ordinal)) end as payload
    from (
      select job.id, job.name, job.run_at, job.ordinal, job.delivery, case when job.actor is null
        then (row_number() over (partition by job.name, job.run_at, job.actor order by job.ordinal) - 1) / together
        else -job.ordinal end as part
      from job where job.id = any(ids) and job.status || '' = 'sent') sent
    group by name, run_at, part) deliveries;
end $function$;

CREATE OR REPLACE FUNCTION public.job_send_heads(actors text[])
 RETURNS uuid[]
 LANGUAGE sql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
  with head as (
    select h.id from unnest(actors) as a(actor)
    cross join lateral (
      select id from job where job.actor = a.actor and status = 'queued' order by ordinal limit 1) h
    where not exists (select from job live where live.actor = a.actor and live.status in ('sent', 'running'))
  ), sent as (
    update job set status = 'sent', delivery = delivery + 1 from head where job.id = head.id returning job.id
  )
  select coalesce(array_agg(id), '{}') from sent
$function$;

CREATE OR REPLACE FUNCTION public.job_settle(ids uuid[])
 RETURNS void
 LANGUAGE plpgsql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
declare
  ended job;
begin
  for ended in select job.* from job where job.id = any(ids) order by job.ordinal loop
    execute format('select %I($1)', ended.settle) using ended;
  end loop;
end $function$;

CREATE OR REPLACE FUNCTION public.job_unknown_owners(of_queue text, of_lane text, after_owner integer, owners integer[], OUT unknown integer[], OUT beyond bigint[])
 RETURNS record
 LANGUAGE sql
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_bitmapscan TO 'off'
AS $function$
  with recursive gap as (
    select known.owner as low, lead(known.owner) over (order by known.owner) as high
    from (select after_owner as owner union select unnest(owners)) known where known.owner >= after_owner
  ), line as (
    select gap.high, first.owner, first.ordinal, 1 as n from gap cross join lateral (
      select coalesce(job.owner_id, 0) as owner, job.ordinal from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) > gap.low and coalesce(job.owner_id, 0) < coalesce(gap.high, 2147483647)
      order by coalesce(job.owner_id, 0), job.ordinal limit 1) first
    union all
    select line.high, next.owner, next.ordinal, line.n + 1 from line cross join lateral (
      select coalesce(job.owner_id, 0) as owner, job.ordinal from job
      where job.queue = of_queue and job.lane = of_lane and job.status = 'queued' and job.actor is null
        and coalesce(job.owner_id, 0) > line.owner and coalesce(job.owner_id, 0) < coalesce(line.high, 2147483647)
      order by coalesce(job.owner_id, 0), job.ordinal limit 1) next
    where line.n < 100
  )
  select coalesce(array_agg(owner), '{}'), coalesce(array_agg(ordinal - 1), '{}')
  from (select owner, ordinal from line limit 100) few
$function$;

CREATE OR REPLACE FUNCTION public.llm_apply(list jsonb, list_source text, list_url text, day date)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
declare
  counts jsonb;
begin
  perform pg_advisory_xact_lock(hashtextextended('millrace.llm', 0));
  if list_source = 'built-in' and exists (select from llm_list where source = 'sync') then
    return null;
  end if;
  with given as materialized (
    select m.*, p.input, p.output, p.cache_read, p.cache_write, p.reasoning as thought, p.input_audio, p.output_audio,
      coalesce(p.tiers, '[]') as tiers,
      array(select u from unnest('{text,image,audio,video}'::text[]) u
        where u = any (m.input_modalities || m.output_modalities)) as modalities
    from jsonb_to_recordset(list -> 'models') m (vendor text, model_id text, title text, family text,
      context_window integer, max_output integer, input_modalities text[], output_modalities text[], reasoning boolean,
      released_on date, disabled boolean, price jsonb)
    cross join jsonb_to_record(case when jsonb_typeof(m.price) = 'object' then m.price else '{}' end) p (input numeric,
      output numeric, cache_read numeric, cache_write numeric, reasoning numeric, input_audio numeric,
      output_audio numeric, tiers jsonb)
  ), vendors as (
    insert into llm_vendor as v (id, name)
    select g.id, g.name from jsonb_to_recordset(list -> 'vendors') g (id text, name text)
    on conflict (id) do update set name = excluded.name where v.name <> excluded.name
  ), models as (
    insert into llm_model as m (vendor, model_id, title, family, context_window, max_output, input_modalities,
      output_modalities, modalities, reasoning, released_on, disabled)
    select vendor, model_id, title, family, context_window, max_output, input_modalities, output_modalities, modalities,
      reasoning, released_on, disabled from given
    on conflict (vendor, model_id) do update set title = excluded.title, family = excluded.family,
      context_window = excluded.context_window, max_output = excluded.max_output,
      input_modalities = excluded.input_modalities, output_modalities = excluded.output_modalities,
      modalities = excluded.modalities, reasoning = excluded.reasoning, released_on = excluded.released_on,
      disabled = excluded.disabled
    where m.* is distinct from excluded.*
  ), gone as (
    update llm_model m set disabled = true
    where not disabled and not exists (select from given g where g.vendor = m.vendor and g.model_id = m.model_id)
    returning 1
  ), prices as (
    insert into llm_price (vendor, model_id, valid_from, input, output, cache_read, cache_write, reasoning, input_audio,
      output_audio, tiers)
    select g.vendor, g.model_id, day, g.input, g.output, g.cache_read, g.cache_write, g.thought, g.input_audio,
      g.output_audio, g.tiers
    from given g left join lateral (
      select * from llm_price p where p.vendor = g.vendor and p.model_id = g.model_id and p.valid_from <= day
      order by p.valid_from desc limit 1) last on true
    where (g.input, g.output, g.cache_read, g.cache_write, g.thought, g.input_audio, g.output_audio, g.tiers)
      is distinct from (last.input, last.output, last.cache_read, last.cache_write, last.reasoning, last.input_audio,
        last.output_audio, coalesce(last.tiers, '[]'))
    on conflict (vendor, model_id, valid_from) do update set input = excluded.input, output = excluded.output,
      cache_read = excluded.cache_read, cache_write = excluded.cache_write, reasoning = excluded.reasoning,
      input_audio = excluded.input_audio, output_audio = excluded.output_audio, tiers = excluded.tiers
    returning 1
  )
  select jsonb_build_object('vendors', jsonb_array_length(list -> 'vendors'), 'models', (select count(*) from given),
    'added', (select count(*) from given g
      where not exists (select from llm_model m where m.vendor = g.vendor and m.model_id = g.model_id)),
    'gone', (select count(*) from gone), 'repriced', (select count(*) from prices)) into counts;
  insert into llm_list (source, url, applied_at) values (list_source, list_url, now())
    on conflict (id) do update set source = excluded.source, url = excluded.url, applied_at = excluded.applied_at,
      refused_at = null, refusal = null;
  return counts;
end $function$;

CREATE OR REPLACE FUNCTION public.login_end(subject bytea, matches boolean, most integer, lock interval)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
  known login_failure;
begin
  select * into known from login_failure f where f.subject = login_end.subject for update;
  -- What is locked does the same work for the right password as for a wrong one.
  if known.locked_until > clock_timestamp() then return 'locked'; end if;
  if matches then
    delete from login_failure f where f.subject = login_end.subject;
    return 'ok';
  end if;
  insert into login_failure as f (subject, failures, failed_at) values (login_end.subject, 1, clock_timestamp())
  on conflict on constraint login_failure_pkey do update set
    -- A lock that has run out, or failures that are as old as one, no longer count.
    failures = case when coalesce(f.locked_until, f.failed_at + lock) <= clock_timestamp() then 1 else f.failures + 1 end,
    locked_until = case when f.locked_until > clock_timestamp() then f.locked_until end,
    failed_at = case when f.locked_until > clock_timestamp() then f.failed_at else clock_timestamp() end
  returning * into known;
  -- Locked by one that was the first failure, too, and that the look above could not see yet.
  if known.locked_until is not null then return 'locked'; end if;
  if known.failures >= most then
    update login_failure f set locked_until = clock_timestamp() + lock where f.subject = login_end.subject;
    return 'wrong, now locked';
  end if;
  return 'wrong';
end $function$;

CREATE OR REPLACE FUNCTION public.member_json(m organization_member)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (m).id, 'organization_id', (m).organization_id, 'user_id', (m).user_id, 'role', (m).role, 'joined_at', iso((m).joined_at));

CREATE OR REPLACE FUNCTION public.organization_json(o organization)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (o).id, 'name', (o).name, 'slug', (o).slug, 'description', (o).description, 'is_active', (o).is_active, 'created_at', iso((o).created_at), 'updated_at', iso((o).updated_at));

CREATE OR REPLACE FUNCTION public.organization_lock(id integer, caller integer)
 RETURNS TABLE(role text)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
begin
  perform from organization o where o.id = organization_lock.id for update;
  if not found then return; end if;
  -- A statement of its own: it sees what the transaction has left that the lock waited for.
  return query select (select m.role from organization_member m
    where m.organization_id = organization_lock.id and m.user_id = caller);
end $function$;

CREATE OR REPLACE FUNCTION public.organization_owner()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform from organization where id = old.organization_id for update;
  if not found then return null; end if;
  -- A statement of its own, like above.
  if not exists (select from organization_member where organization_id = old.organization_id and role = 'owner') then
    raise exception 'An organization keeps an owner' using errcode = 'check_violation', constraint = 'organization_owner';
  end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.page_indexed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.search := page_vector(new.text);
  perform search_words_of(array[new.search]);
  return new;
end $function$;

CREATE OR REPLACE FUNCTION public.page_vector(given text)
 RETURNS tsvector
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
begin
  if length(given) <= 100000 then return to_tsvector('folded', given); end if;
  begin
    return to_tsvector('folded', left(given, 600000));
  exception when program_limit_exceeded then
    return to_tsvector('folded', left(given, 100000));
  end;
end $function$;

CREATE OR REPLACE FUNCTION public.payment_apply(changes jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  change record;
begin
  -- What is told of the same thing is told one after the other. Always in key order, so that none waits for each other.
  perform pg_advisory_xact_lock(key) from (
    select distinct hashtextextended('millrace.payment:' || named, 0) as key
    from jsonb_to_recordset(changes) as c(id text, ids text[]), unnest(c.ids || c.id) named
    where named is not null order by 1) locks;
  for change in select * from jsonb_to_recordset(changes) as c(kind text, id text, ids text[], request uuid, facts jsonb) loop
    case change.kind
      when 'customer' then perform payment_customer_of(change.id);
      when 'transaction' then perform payment_apply_transaction(change.ids, change.facts);
      when 'refund' then perform payment_apply_refund(change.id, change.ids, change.request, change.facts);
      when 'subscription' then perform payment_apply_subscription(change.id, change.facts);
      when 'dispute' then perform payment_apply_dispute(change.id, change.ids, change.facts);
    end case;
  end loop;
end $function$;

CREATE OR REPLACE FUNCTION public.payment_apply_dispute(dispute text, ids text[], said jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  insert into payment_dispute as d (provider_dispute_id, transaction_id, facts)
  values (dispute, (payment_transactions_locked(ids))[1], said)
  on conflict on constraint payment_dispute_provider_dispute_id_key do update
  set facts = payment_join(d.facts, excluded.facts), transaction_id = coalesce(excluded.transaction_id, d.transaction_id)
  where d.facts is distinct from payment_join(d.facts, excluded.facts) or d.transaction_id is null;
end $function$;

CREATE OR REPLACE FUNCTION public.payment_apply_refund(refund text, ids text[], request uuid, said jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  rows integer[] := payment_transactions_locked(ids);
  charge payment_transaction;
  known integer;
  asked integer;
  joined jsonb;
begin
  select * into charge from payment_transaction where id = rows[1];
  if not found then return; end if;
  select transaction_id into known from payment_reference where provider_id = refund;
  select id into asked from payment_transaction where job_id = request and charge_id = charge.id and not shown;
  if known is not null and asked is not null then
    delete from payment_transaction where id = asked;
  end if;
  known := coalesce(known, asked);
  if known is null then
    insert into payment_transaction (charge_id, customer_id, facts) values (charge.id, charge.customer_id, said)
    returning id into known;
  else
    select payment_join(t.facts, said) into joined from payment_transaction t where t.id = known;
    update payment_transaction t set facts = joined where t.id = known and t.facts <> joined;
  end if;
  insert into payment_reference (provider_id, transaction_id) values (refund, known) on conflict do nothing;
end $function$;

CREATE OR REPLACE FUNCTION public.payment_apply_subscription(subscription text, said jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  insert into payment_subscription as s (provider_subscription_id, customer_id, facts)
  values (subscription, payment_customer_of(said #>> '{customer,1}'), said)
  on conflict on constraint payment_subscription_provider_subscription_id_key do update
  set facts = payment_join(s.facts, excluded.facts), customer_id = coalesce(s.customer_id, excluded.customer_id)
  where s.facts is distinct from payment_join(s.facts, excluded.facts);
end $function$;

CREATE OR REPLACE FUNCTION public.payment_apply_transaction(ids text[], said jsonb)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  rows integer[] := payment_transactions_locked(ids);
  kept integer := rows[1];
  twin integer;
  held jsonb;
  joined jsonb := said;
begin
  if kept is null then
    insert into payment_transaction (facts, customer_id) values (said, payment_customer_of(said #>> '{customer,1}'))
    returning id into kept;
  else
    foreach twin in array rows loop
      select facts into held from payment_transaction where id = twin;
      joined := payment_join(joined, held);
    end loop;
    -- Before the refunds move: there has to be something that they are refunds of.
    update payment_transaction t set facts = joined, customer_id = payment_customer_of(joined #>> '{customer,1}')
    where t.id = kept and t.facts <> joined;
    update payment_transaction refund set customer_id = charge.customer_id from payment_transaction charge
    where charge.id = kept and refund.charge_id = kept and refund.customer_id is distinct from charge.customer_id;
    foreach twin in array rows[2:] loop
      update payment_reference set transaction_id = kept where transaction_id = twin;
      update payment_dispute set transaction_id = kept where transaction_id = twin;
      update payment_transaction refund set charge_id = kept, customer_id = charge.customer_id from payment_transaction charge
      where charge.id = kept and refund.charge_id = twin;
      delete from payment_transaction where id = twin;
    end loop;
  end if;
  insert into payment_reference (provider_id, transaction_id) select id, kept from unnest(ids) id on conflict do nothing;
  update payment_dispute d set transaction_id = kept
  where d.provider_charge_id = any(ids) and d.transaction_id is distinct from kept;
  update payment_dispute d set transaction_id = kept
  where d.provider_payment_intent_id = any(ids) and d.transaction_id is distinct from kept;
end $function$;

CREATE OR REPLACE FUNCTION public.payment_customer_of(provider_customer text)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  customer integer;
begin
  if provider_customer is null then return null; end if;
  select id into customer from payment_customer where provider_customer_id = provider_customer;
  if customer is not null then return customer; end if;
  insert into payment_customer (provider_customer_id) values (provider_customer) on conflict do nothing;
  -- A statement of its own: it sees what the insert waited for.
  select id into customer from payment_customer where provider_customer_id = provider_customer;
  return customer;
end $function$;

CREATE OR REPLACE FUNCTION public.payment_dispute_json(d payment_dispute, t payment_transaction)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (d).id, 'transaction_id', (d).transaction_id, 'provider_dispute_id', (d).provider_dispute_id, 'status', (d).status, 'reason', (d).reason, 'amount', COALESCE((d).amount, (t).amount, (0)::bigint), 'currency', COALESCE((d).currency, (t).currency), 'evidence_due_by', iso((d).evidence_due_by), 'event_type', (d).event_type, 'created_at', iso((d).created_at), 'updated_at', iso((d).updated_at));

CREATE OR REPLACE FUNCTION public.payment_event_apply(event text, changes jsonb)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
begin
  update payment_event set applied_at = now(), data = null where id = event and applied_at is null;
  if not found then return false; end if;
  perform payment_apply(changes);
  return true;
end $function$;

CREATE OR REPLACE FUNCTION public.payment_event_take(id text, type text, created_at timestamp with time zone, data jsonb)
 RETURNS TABLE(fresh boolean, job_id uuid)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
begin
  insert into payment_event (id, type, created_at, data)
  values (payment_event_take.id, payment_event_take.type, payment_event_take.created_at, payment_event_take.data)
  on conflict on constraint payment_event_pkey do nothing;
  if found then
    return query select true, null::uuid;
    return;
  end if;
  -- Locked: of two that come again at once one takes it up.
  return query select e.applied_at is null and not exists (
      select from job j where j.id = e.job_id and j.status in ('queued', 'sent', 'running')),
      case when e.applied_at is null then e.job_id end
    from payment_event e where e.id = payment_event_take.id for update;
end $function$;

CREATE OR REPLACE FUNCTION public.payment_join(one jsonb, other jsonb)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (SELECT COALESCE(jsonb_object_agg(held.key, held.value), '{}'::jsonb) AS "coalesce" FROM (SELECT DISTINCT ON (said.key) said.key, said.value FROM (SELECT jsonb_each.key, jsonb_each.value FROM jsonb_each(payment_join.one) jsonb_each(key, value) UNION ALL SELECT jsonb_each.key, jsonb_each.value FROM jsonb_each(payment_join.other) jsonb_each(key, value)) said ORDER BY said.key, ((said.value ->> 0) COLLATE "C") DESC, (((said.value -> 1))::text COLLATE "C") DESC) held);

CREATE OR REPLACE FUNCTION public.payment_refund_reserve(id integer, owner integer, everybody boolean, amount bigint, reason text)
 RETURNS TABLE(refund_id integer, problem text, status text, available bigint)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
  charge payment_transaction;
begin
  select t.* into charge from payment_transaction t
  where t.id = payment_refund_reserve.id and t.shown and (everybody or t.customer_id = (
    select c.id from payment_customer c where c.user_id = owner)) for update;
  if not found then return; end if;
  status := case when charge.charge_id is null then charge.status else 'a refund' end;
  available := charge.amount - coalesce(charge.refunded, 0) - charge.reserved;
  if status not in ('succeeded', 'partially_refunded') then
    problem := 'status';
  elsif coalesce(payment_refund_reserve.amount, available) > available or available <= 0 then
    problem := 'amount';
  else
    insert into payment_transaction as t (customer_id, charge_id, reason, facts)
    values (charge.customer_id, charge.id, payment_refund_reserve.reason, jsonb_build_object(
      'money', jsonb_build_array('0', jsonb_build_object('amount', coalesce(payment_refund_reserve.amount, available),
        'currency', charge.currency)),
      'outcome', jsonb_build_array('', 'pending')))
    returning t.id into refund_id;
  end if;
  return next;
end $function$;

CREATE OR REPLACE FUNCTION public.payment_refunds_counted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  counted integer;
begin
  -- In a loop and by a lock first: the statement that counts then sees what the lock waited for.
  for counted in select distinct c from unnest(array[old.charge_id, new.charge_id]) c where c is not null order by c loop
    perform from payment_transaction where id = counted for update;
    update payment_transaction charge set refunds = sum.taken, reserved = sum.asked
    from (
      select coalesce(sum(amount) filter (where shown and status in ('succeeded', 'pending')), 0) as taken,
        coalesce(sum(amount) filter (where not shown and status = 'pending'), 0) as asked
      from payment_transaction where charge_id = counted) sum
    where charge.id = counted and (charge.refunds, charge.reserved) is distinct from (sum.taken, sum.asked);
  end loop;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.payment_status(is_refund boolean, facts jsonb, refunds bigint)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN (is_refund OR (COALESCE((facts #>> '{outcome,1}'::text[]), 'pending'::text) <> 'succeeded'::text)) THEN COALESCE((facts #>> '{outcome,1}'::text[]), 'pending'::text) WHEN (GREATEST(refunds, ((facts #>> '{refunded,1}'::text[]))::bigint, (0)::bigint) = 0) THEN 'succeeded'::text WHEN (GREATEST(refunds, ((facts #>> '{refunded,1}'::text[]))::bigint) >= ((facts #>> '{money,1,amount}'::text[]))::bigint) THEN 'refunded'::text ELSE 'partially_refunded'::text END;

CREATE OR REPLACE FUNCTION public.payment_subscription_json(s payment_subscription)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (s).id, 'provider_subscription_id', (s).provider_subscription_id, 'plan_name', (s).plan_name, 'status', (s).status, 'current_period_start', iso((s).current_period_start), 'current_period_end', iso((s).current_period_end), 'cancel_at_period_end', (s).cancel_at_period_end);

CREATE OR REPLACE FUNCTION public.payment_transaction_json(t payment_transaction)
 RETURNS json
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN json_build_object('id', (t).id, 'provider_transaction_id', (t).provider_transaction_id, 'type', (t).type, 'status', (t).status, 'amount', (t).amount, 'currency', (t).currency, 'description', COALESCE((t).description, ('Refund of transaction '::text || (t).charge_id), ''::text), 'created_at', iso((t).created_at));

CREATE OR REPLACE FUNCTION public.payment_transactions_locked(ids text[])
 RETURNS integer[]
 LANGUAGE plpgsql
AS $function$
declare
  found_rows integer[];
  still integer[];
begin
  loop
    select coalesce(array_agg(distinct transaction_id order by transaction_id), '{}') into found_rows
    from payment_reference where provider_id = any(ids);
    perform from payment_transaction where id = any(found_rows) order by id for update;
    -- Two of them may have become one while this waited.
    select coalesce(array_agg(distinct transaction_id order by transaction_id), '{}') into still
    from payment_reference where provider_id = any(ids);
    exit when still = found_rows;
  end loop;
  return found_rows;
end $function$;

CREATE OR REPLACE FUNCTION public.quoted_lexeme(word text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((''''::text || replace(replace(word, '\'::text, '\\'::text), ''''::text, ''''''::text)) || ''''::text);

CREATE OR REPLACE FUNCTION public.rag_has_neighbours(collection integer, of_model text, size integer)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  complete boolean;
begin
  if size is null or to_regclass(rag_neighbour_table(size)) is null then return false; end if;
  execute format('select not exists (select from rag_file f join rag_vector v on v.file_id = f.id and v.model = $2
    where f.collection_id = $1 and f.build_id is null
      and (v.dimensions <> $3 or f.chunk_count <> (select count(*) from %I n where n.file_id = f.id and n.model = $2)))',
    rag_neighbour_table(size)) into complete using collection, of_model, size;
  return complete;
end $function$;

CREATE OR REPLACE FUNCTION public.rag_neighbour_table(size integer)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select 'rag_neighbour_' || size
$function$;

CREATE OR REPLACE FUNCTION public.rag_neighbours(collection integer, of_model text, size integer, wanted text, most integer, files bigint[] DEFAULT NULL::bigint[], ordinals integer[] DEFAULT NULL::integer[])
 RETURNS TABLE(file_id bigint, ordinal integer, score double precision)
 LANGUAGE plpgsql
AS $function$
begin
  -- Without these the index would stop at its first candidates, whatever is left of them.
  perform set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', least(1000, most * 2)::text, true);
  return query execute case when files is null then
    format('select n.file_id, n.ordinal, -(n.embedding <#> $3::vector) from %I n join rag_file f on f.id = n.file_id
      where n.collection_id = $1 and n.model = $2 and f.build_id is null
      order by n.embedding <#> $3::vector limit $4', rag_neighbour_table(size))
  else
    format('with chosen as materialized (select n.* from unnest($5, $6) as w(file_id, ordinal)
        join %I n on n.file_id = w.file_id and n.model = $2 and n.ordinal = w.ordinal)
      select n.file_id, n.ordinal, -(n.embedding <#> $3::vector) from chosen n
      order by n.embedding <#> $3::vector, 1, 2 limit $4', rag_neighbour_table(size))
  end using collection, of_model, wanted, most, files, ordinals;
end $function$;

CREATE OR REPLACE FUNCTION public.rag_neighbours_add(size integer, of_model text, files bigint[], ordinals integer[], vectors text[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  execute format('insert into %I (file_id, model, ordinal, collection_id, embedding)
    select n.file_id, $1, n.ordinal, f.collection_id, n.embedding::vector
    from unnest($2, $3, $4) as n(file_id, ordinal, embedding) join rag_file f on f.id = n.file_id
    join rag_vector v on v.file_id = n.file_id and v.model = $1
    on conflict (file_id, model, ordinal) do update set embedding = excluded.embedding', rag_neighbour_table(size))
  using of_model, files, ordinals, vectors;
end $function$;

CREATE OR REPLACE FUNCTION public.rag_neighbours_prepare(size integer)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  name text := rag_neighbour_table(size);
begin
  if size > 2000 or not exists (select from pg_extension where extname = 'vector') then return false; end if;
  if to_regclass(name) is not null then return true; end if;
  perform pg_advisory_xact_lock(hashtext(name));
  execute format('create table if not exists %I (file_id bigint not null, model text not null, ordinal integer not null,
    collection_id integer not null, embedding vector(%s) not null, primary key (file_id, model, ordinal),
    foreign key (file_id, model) references rag_vector (file_id, model) on delete cascade)', name, size);
  execute format('create index if not exists %I on %I using hnsw (embedding vector_ip_ops)', name || '_embedding_idx', name);
  return true;
end $function$;

CREATE OR REPLACE FUNCTION public.rag_swap(collection integer, build uuid, gone bigint[], request jsonb, new_model text)
 RETURNS TABLE(document_count integer, chunk_count integer)
 LANGUAGE plpgsql
AS $function$
begin
  perform from rag_collection c where c.id = collection and c.deleted_at is null for update;
  if not found then return; end if;
  delete from rag_file f where f.collection_id = collection and f.build_id is null and (f.id = any(gone)
    or exists (select from rag_file n where n.collection_id = collection and n.build_id = build and n.source = f.source));
  update rag_file f set build_id = null where f.collection_id = collection and f.build_id = build;
  if new_model is not null then
    delete from rag_vector v using rag_file f where f.collection_id = collection and f.build_id is null
      and v.file_id = f.id and v.model <> new_model;
  end if;
  return query
    update rag_collection c set version = c.version + 1, updated_at = now(), metadata = request,
      document_count = s.files, chunk_count = s.chunks, term_count = s.terms, embedding_model = m.model, dimensions = m.size,
      has_neighbours = rag_has_neighbours(collection, m.model, m.size)
    from (select count(*)::int as files, coalesce(sum(f.chunk_count), 0)::int as chunks,
        coalesce(sum(f.term_count), 0)::bigint as terms
      from rag_file f where f.collection_id = collection and f.build_id is null) s
    left join (select v.model, max(v.dimensions) as size
      from rag_collection o join rag_file f on f.collection_id = o.id and f.build_id is null join rag_vector v on v.file_id = f.id
      where o.id = collection
      group by v.model, o.embedding_model
      order by v.model = coalesce(o.embedding_model, '') desc, count(*) desc, v.model limit 1) m on true
    where c.id = collection
    returning c.document_count, c.chunk_count;
end $function$;

CREATE OR REPLACE FUNCTION public.request_limit_take(name text, subject text, most integer, span interval)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
  at timestamptz;
  recent timestamptz[];
begin
  loop
    insert into request_limit (name, subject, hits, expires_at)
    values (request_limit_take.name, request_limit_take.subject, '{}', clock_timestamp() + span)
    on conflict on constraint request_limit_pkey do nothing;
    select hits into recent from request_limit r
    where r.name = request_limit_take.name and r.subject = request_limit_take.subject for update;
    -- Housekeeping may have removed the row in between; what is not there can't be counted on.
    exit when found;
  end loop;
  at := clock_timestamp();
  select coalesce(array_agg(hit order by hit), '{}') into recent from unnest(recent) hit where hit > at - span;
  if cardinality(recent) >= most then
    return greatest(1, ceil(extract(epoch from recent[cardinality(recent) - most + 1] + span - at) * 1000));
  end if;
  update request_limit r set hits = recent || at, expires_at = at + span
  where r.name = request_limit_take.name and r.subject = request_limit_take.subject;
  return 0;
end $function$;

CREATE OR REPLACE FUNCTION public.search_terms(given text)
 RETURNS TABLE(n integer, negated boolean, exact tsquery, wide tsquery)
 LANGUAGE plpgsql
 STABLE ROWS 3
AS $function$
declare
  term text[];
  bare text;
  part text;
begin
  n := 0;
  for term in select regexp_matches(given, '(-?)(?:"([^"]*)"?|(\S+))', 'g') limit 16 loop
    negated := term[1] = '-';
    bare := rtrim(coalesce(term[3], ''), '*');
    exact := case when term[2] is not null then phraseto_tsquery('folded', term[2]) else plainto_tsquery('folded', bare) end;
    if numnode(exact) = 0 then continue; end if;
    n := n + 1;
    wide := exact;
    -- A query's text ends with its last word, which `:*` makes a prefix.
    if term[3] is not null then wide := exact || (exact::text || ':*')::tsquery; end if;
    if term[3] is not null and numnode(exact) = 1 then
      select lexeme into part from unnest(to_tsvector('folded', bare));
      -- Two letters are in everything; two characters of other scripts can be a word.
      if length(part) > 2 or length(part) = 2 and part ~ '[^\x01-\x7f]' then
        wide := wide || coalesce((
          select string_agg(quoted_lexeme(word), ' | ')::tsquery from (
            select word from search_word
            where word like '%' || replace(replace(replace(part, '\', '\\'), '%', '\%'), '_', '\_') || '%'
            order by length(word), word limit 100) found), '');
      end if;
    end if;
    return next;
  end loop;
end $function$;

CREATE OR REPLACE FUNCTION public.search_words_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into search_word (word)
  select distinct lexeme from changed, unnest(changed.search) where length(lexeme) <= 100 order by 1
  on conflict do nothing;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.search_words_of(vectors tsvector[])
 RETURNS void
 LANGUAGE sql
AS $function$
  insert into search_word (word)
  select distinct lexeme from unnest(vectors) vector, unnest(vector) where length(lexeme) <= 100 order by 1
  on conflict do nothing
$function$;

CREATE OR REPLACE FUNCTION public.session_refresh(presented bytea, successor bytea, lifetime interval)
 RETURNS TABLE(account_id integer, session_id uuid, role text, replayed boolean)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
  family session;
  token refresh_token;
begin
  select s.* into family from session s join refresh_token t on t.session_id = s.id
  where t.digest = presented for update of s;
  if not found or family.ended_at is not null then return; end if;
  -- Read under the family's lock, so that of two exchanges at once the second sees the first.
  select * into token from refresh_token where digest = presented;
  if token.rotated_at is null then
    if token.expires_at <= now() then return; end if;
  elsif not exists (select from refresh_token t where t.digest = successor and t.session_id = family.id
      and t.rotated_at is null and t.expires_at > now()) then
    -- After a sign-out, too: its access tokens are still good, and somebody else has had the refresh token.
    update session set revoked_at = coalesce(revoked_at, now()), ended_at = now() where id = family.id;
    return query select family.account_id, family.id, '', true;
    return;
  end if;
  if family.revoked_at is not null then return; end if;
  if not exists (select from account where id = family.account_id and is_active) then return; end if;
  if token.rotated_at is null then
    update refresh_token set rotated_at = now() where digest = presented;
    insert into refresh_token (digest, session_id, expires_at) values (successor, family.id, now() + lifetime);
  end if;
  return query select a.id, family.id, a.role, false from account a where a.id = family.account_id;
end $function$;

CREATE TRIGGER account_last_admin_delete AFTER DELETE ON public.account FOR EACH ROW WHEN (((old.role = 'admin'::text) AND old.is_active)) EXECUTE FUNCTION account_last_admin();

CREATE TRIGGER account_last_admin_update AFTER UPDATE OF role, is_active ON public.account FOR EACH ROW WHEN (((old.role = 'admin'::text) AND old.is_active AND ((new.role <> 'admin'::text) OR (NOT new.is_active)))) EXECUTE FUNCTION account_last_admin();

CREATE TRIGGER audit_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.audit_event FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();

CREATE TRIGGER blog_post_added AFTER INSERT ON public.blog_post REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION blog_posts_added();

CREATE TRIGGER blog_post_moved AFTER UPDATE OF status ON public.blog_post FOR EACH ROW WHEN ((old.status <> new.status)) EXECUTE FUNCTION blog_post_moved();

CREATE TRIGGER blog_post_removed AFTER DELETE ON public.blog_post REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION blog_posts_removed();

CREATE TRIGGER blog_post_tag_added AFTER INSERT ON public.blog_post_tag REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION blog_post_tags_changed();

CREATE TRIGGER blog_post_tag_removed AFTER DELETE ON public.blog_post_tag REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION blog_post_tags_changed();

CREATE TRIGGER blog_tag_changed AFTER UPDATE ON public.blog_tag REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION blog_tags_changed();

CREATE TRIGGER document_supersedes BEFORE INSERT OR UPDATE OF supersedes_id ON public.document FOR EACH ROW WHEN ((new.supersedes_id <> new.id)) EXECUTE FUNCTION document_supersedes();

CREATE TRIGGER search_words_inserted AFTER INSERT ON public.document REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION search_words_kept();

CREATE TRIGGER search_words_updated AFTER UPDATE ON public.document REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION search_words_kept();

CREATE TRIGGER page_indexed_insert BEFORE INSERT ON public.document_page FOR EACH ROW WHEN ((new.search IS NULL)) EXECUTE FUNCTION page_indexed();

CREATE TRIGGER page_indexed_update BEFORE UPDATE OF text ON public.document_page FOR EACH ROW WHEN (((NOT (new.search IS DISTINCT FROM old.search)) AND (new.text <> old.text))) EXECUTE FUNCTION page_indexed();

CREATE TRIGGER job_gone AFTER DELETE ON public.job REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION job_gone();

CREATE TRIGGER organization_owner_delete AFTER DELETE ON public.organization_member FOR EACH ROW WHEN ((old.role = 'owner'::text)) EXECUTE FUNCTION organization_owner();

CREATE TRIGGER organization_owner_update AFTER UPDATE OF role, organization_id ON public.organization_member FOR EACH ROW WHEN (((old.role = 'owner'::text) AND ((new.role <> 'owner'::text) OR (new.organization_id <> old.organization_id)))) EXECUTE FUNCTION organization_owner();

CREATE TRIGGER payment_refund_deleted AFTER DELETE ON public.payment_transaction FOR EACH ROW WHEN ((old.charge_id IS NOT NULL)) EXECUTE FUNCTION payment_refunds_counted();

CREATE TRIGGER payment_refund_inserted AFTER INSERT ON public.payment_transaction FOR EACH ROW WHEN ((new.charge_id IS NOT NULL)) EXECUTE FUNCTION payment_refunds_counted();

CREATE TRIGGER payment_refund_updated AFTER UPDATE ON public.payment_transaction FOR EACH ROW WHEN (((old.charge_id IS NOT NULL) OR (new.charge_id IS NOT NULL))) EXECUTE FUNCTION payment_refunds_counted();
