-- Conversations with models. A turn is an `ai.chat` job of its conversation's actor. The question and a pending answer
-- are stored in the same transaction as the job. The transaction that ends the job also settles the answer. The stored
-- answer thus matches what its subscribers have seen, however the turn ended.

create table ai_agent (
  slug text not null,
  name text not null,
  description text not null default '',
  category text not null default 'general',
  -- Null means the deployment's model, temperature and maximum length.
  model_id text,
  -- Model that answers if the first one fails; null means that of the settings.
  fallback_model_id text,
  temperature double precision,
  max_tokens integer,
  system_prompt text not null,
  is_active boolean not null default true,
  tools jsonb not null default '[]',
  memory_modules jsonb not null default '[]',
  knowledge_base_ids jsonb not null default '[]',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint ai_agent_pkey primary key (slug),
  constraint ai_agent_slug_check check (slug ~ '^[a-z0-9]+(-[a-z0-9]+)*$' and length(slug) <= 63),
  constraint ai_agent_temperature_check check (temperature between 0 and 2),
  constraint ai_agent_max_tokens_check check (max_tokens between 1 and 1000000),
  constraint ai_agent_system_prompt_check check (system_prompt ~ '\S')
);

create table ai_conversation (
  id uuid not null,
  -- The id of the owner's account, or the name given by a caller without an account.
  user_id text not null,
  owner_id integer,
  title text not null,
  provider text not null,
  model text not null,
  last_response_ms double precision,
  -- Number of visible messages, maintained by triggers.
  message_count integer not null default 0,
  -- Time of the latest unscored answer, or the time until which its scoring is postponed; null if every answer is
  -- scored.
  unscored_since timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint ai_conversation_pkey primary key (id),
  constraint ai_conversation_owner_id_fkey foreign key (owner_id) references account (id) on delete cascade,
  constraint ai_conversation_user_id_check check (length(user_id) between 1 and 255),
  constraint ai_conversation_title_check check (length(title) between 1 and 200)
);
create index ai_conversation_user_id_idx on ai_conversation (user_id, updated_at desc, id desc) where owner_id is null;
create index ai_conversation_owner_id_idx on ai_conversation (owner_id, updated_at desc, id desc) where owner_id is not null;
create index ai_conversation_unscored_idx on ai_conversation (unscored_since) where unscored_since is not null;

-- Number of conversations per UTC day on which they began. Maintained by sums/functions.
create table ai_conversation_count (
  id bigint generated always as identity,
  day date not null,
  conversations bigint not null,
  constraint ai_conversation_count_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index ai_conversation_count_day_idx on ai_conversation_count (day);

-- Messages form a tree: a question follows an answer, and each version of an answer follows its question. The active
-- branch leads from a root to the last active message. A new turn continues it.
--
-- Status of a message:
--
-- - complete: a question, results of tools, or a complete answer
-- - pending: its job has not ended
-- - failed, stopped: the answer up to the point where the turn failed or was stopped; often empty
create table ai_message (
  id uuid not null,
  ordinal bigint generated always as identity,
  conversation_id uuid not null,
  -- The message that this one follows; null for the first question, and for its edited versions. A foreign key would cost
  -- a lookup and a trigger for each deleted message, and messages only leave together with their conversation.
  parent_id uuid,
  -- True if the message is on the branch that the conversation shows.
  is_active boolean not null default true,
  -- `tool` is a caller's results of the calls in the answer before.
  role text not null,
  status text not null,
  content text not null,
  -- Documents that the question refers to. Turns skip those that are gone.
  document_ids bigint[] not null default '{}',
  -- Calls of tools that the answer asks for, as [{id, name, arguments}]; null if it asks for none.
  tool_calls jsonb,
  -- Results of all calls of the answer before, as [{tool_call_id, content}]; null for questions and answers.
  tool_results jsonb,
  -- The job of an answer; null for questions, and for answers that a new conversation took over.
  job_id uuid,
  provider text,
  model text,
  response_ms double precision,
  -- Null for questions, and for answers that are not complete.
  finish_reason text,
  -- Reasoning next to the answer; null if the model showed none. No later turn sends it.
  reasoning text,
  -- The chunks of a collection that the model got, as [{rank, score, content, metadata}]; null without a collection.
  rag_sources jsonb,
  error_detail text,
  created_at timestamptz not null default now(),
  settled_at timestamptz,
  -- True if the conversation shows the message, and counts it.
  is_visible boolean not null generated always as (is_active and status <> 'pending'
    and (content <> '' or tool_calls is not null or tool_results is not null)) stored,
  constraint ai_message_pkey primary key (id),
  constraint ai_message_conversation_id_fkey foreign key (conversation_id) references ai_conversation (id) on delete cascade,
  constraint ai_message_role_check check (role in ('user', 'assistant', 'tool')),
  constraint ai_message_status_check check (status in ('complete', 'pending', 'failed', 'stopped')),
  constraint ai_message_user_check check (role = 'assistant' or (status = 'complete' and job_id is null)),
  constraint ai_message_job_check check (status <> 'pending' or job_id is not null),
  constraint ai_message_tools_check check ((role = 'tool') = (tool_results is not null) and (role = 'assistant' or tool_calls is null)),
  constraint ai_message_settled_check check ((status = 'pending') = (settled_at is null))
);
create index ai_message_conversation_id_idx on ai_message (conversation_id, ordinal);
create index ai_message_parent_id_idx on ai_message (parent_id, ordinal) where parent_id is not null;
create index ai_message_root_idx on ai_message (conversation_id, ordinal) where parent_id is null;
create unique index ai_message_job_id_key on ai_message (job_id) where job_id is not null;

-- The words of titles and messages, for searches. Triggers maintain them: a title when it changes, all others once an answer
-- ends. A table of its own, because conversations and messages are updated several times in a turn.
create table ai_text (
  -- The message, or the conversation for its title.
  text_id uuid not null,
  -- Number of a part of 16,000 characters, see `page_part`. Texts beyond eight parts are not searched.
  part integer not null,
  conversation_id uuid not null,
  -- See `ai_search_space`.
  space integer not null,
  search tsvector not null,
  constraint ai_text_pkey primary key (text_id, part),
  constraint ai_text_conversation_id_fkey foreign key (conversation_id) references ai_conversation (id) on delete cascade
) with (autovacuum_vacuum_insert_scale_factor = 0.02);
create index ai_text_conversation_id_idx on ai_text (conversation_id, text_id desc);
create index ai_text_search_idx on ai_text using gin (owned_vector(space, search));

-- Usage of models. Costs are exact and in US dollars; null if the price is unknown.
create table ai_usage (
  id bigint generated always as identity,
  user_id text not null,
  owner_id integer,
  -- API key of the request; null without one. The key may be deleted.
  key_id uuid,
  conversation_id uuid,
  message_id uuid,
  action text not null,
  vendor text not null,
  model text not null,
  -- Input tokens include those from the provider's cache; output tokens include reasoning.
  input_tokens bigint not null,
  cached_tokens bigint not null default 0,
  output_tokens bigint not null,
  reasoning_tokens bigint not null default 0,
  -- Length of the speech that was recognized.
  audio_seconds numeric not null default 0,
  cost numeric,
  -- True if the service counted the tokens itself, because the provider did not report them.
  estimated boolean not null,
  success boolean not null,
  created_at timestamptz not null default now(),
  constraint ai_usage_pkey primary key (id),
  constraint ai_usage_owner_id_fkey foreign key (owner_id) references account (id) on delete set null,
  constraint ai_usage_message_id_key unique (message_id),
  constraint ai_usage_user_id_check check (length(user_id) between 1 and 255),
  constraint ai_usage_tokens_check check (input_tokens >= 0 and output_tokens >= 0 and cached_tokens >= 0 and reasoning_tokens >= 0
    and audio_seconds >= 0),
  constraint ai_usage_cost_check check (cost >= 0)
);
create index ai_usage_created_at_idx on ai_usage (created_at desc, id desc);
create index ai_usage_user_id_idx on ai_usage (user_id, created_at desc, id desc);
create index ai_usage_owner_id_idx on ai_usage (owner_id) where owner_id is not null;

-- Sums of usage per user_id ('' for all), owner (0 for none or all), UTC day and model. `cost` covers only usage with a
-- known price. Maintained by sums/functions.
create table ai_usage_sum (
  id bigint generated always as identity,
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
  constraint ai_usage_sum_pkey primary key (id)
) with (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
-- Each day of a user is on a different table page, so only an index-only scan reads a year of them quickly.
create index ai_usage_sum_user_id_idx on ai_usage_sum (user_id, day, owner_id, vendor, model)
  include (requests, successes, input_tokens, output_tokens, audio_seconds, unpriced, estimated, cost);

create table ai_sentiment (
  conversation_id uuid not null,
  -- A copy of the conversation's owner, because the conversation is gone when the cascade deletes this row.
  owner_id integer,
  sentiment text not null,
  performance text not null,
  score double precision not null,
  scored_at timestamptz not null default now(),
  constraint ai_sentiment_pkey primary key (conversation_id),
  constraint ai_sentiment_conversation_id_fkey foreign key (conversation_id) references ai_conversation (id) on delete cascade,
  constraint ai_sentiment_sentiment_check check (sentiment in ('positive', 'neutral', 'negative', 'frustrated')),
  constraint ai_sentiment_performance_check check (performance in ('good', 'acceptable', 'poor')),
  constraint ai_sentiment_score_check check (score between -1 and 1)
);
create index ai_sentiment_negative_idx on ai_sentiment (scored_at desc) where sentiment in ('negative', 'frustrated');
create index ai_sentiment_owner_id_idx on ai_sentiment (owner_id, scored_at desc) where sentiment in ('negative', 'frustrated');

-- Number and sum of conversation scores per owner (0 for all). Maintained by sums/functions.
create table ai_sentiment_sum (
  id bigint generated always as identity,
  owner_id integer not null,
  sentiment text not null,
  performance text not null,
  scores bigint not null,
  -- numeric is exact, whereas a sum of floats drifts when values are subtracted.
  score numeric not null,
  constraint ai_sentiment_sum_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
create index ai_sentiment_sum_owner_id_idx on ai_sentiment_sum (owner_id, sentiment, performance);
