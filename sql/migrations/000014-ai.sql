-- Conversations with models. A turn is a job `ai.chat` of its conversation's actor: the question and a pending answer are
-- written with the job, and the answer is settled by the job's end, in its transaction. So what is stored as the answer
-- is what its readers have seen, whichever way the turn ended and whoever ended it.

create table ai_agent (
  slug text not null,
  name text not null,
  description text not null default '',
  category text not null default 'general',
  -- Null: the deployment's model, temperature and length.
  model_id text,
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
insert into ai_agent (slug, name, description, system_prompt) values ('assistant', 'Assistant',
  'Answers in conversations that name no other agent', 'You are a helpful assistant.');

create table ai_conversation (
  id uuid not null,
  -- Whose it is: what a caller without an account calls themselves, or the account's id.
  user_id text not null,
  owner_id integer,
  title text not null,
  provider text not null,
  model text not null,
  last_response_ms double precision,
  -- When the last answer came that no score is about; null: there is none.
  unscored_since timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint ai_conversation_pkey primary key (id),
  constraint ai_conversation_owner_id_fkey foreign key (owner_id) references account (id) on delete cascade,
  constraint ai_conversation_user_id_check check (length(user_id) between 1 and 255),
  constraint ai_conversation_title_check check (length(title) between 1 and 200)
);
create index ai_conversation_user_id_idx on ai_conversation (user_id, updated_at desc, id desc);
create index ai_conversation_owner_id_idx on ai_conversation (owner_id) where owner_id is not null;
create index ai_conversation_unscored_idx on ai_conversation (unscored_since) where unscored_since is not null;

-- status:  complete  a question, or a whole answer
--          pending   its job has not ended
--          failed, stopped  what came of it before the turn failed or was stopped; nothing, often
create table ai_message (
  id uuid not null,
  ordinal bigint generated always as identity,
  conversation_id uuid not null,
  role text not null,
  status text not null,
  content text not null,
  job_id uuid,
  provider text,
  model text,
  response_ms double precision,
  error_detail text,
  created_at timestamptz not null default now(),
  settled_at timestamptz,
  constraint ai_message_pkey primary key (id),
  constraint ai_message_conversation_id_fkey foreign key (conversation_id) references ai_conversation (id) on delete cascade,
  constraint ai_message_role_check check (role in ('user', 'assistant')),
  constraint ai_message_status_check check (status in ('complete', 'pending', 'failed', 'stopped')),
  constraint ai_message_user_check check (role = 'assistant' or (status = 'complete' and job_id is null)),
  constraint ai_message_job_check check (role = 'user' or job_id is not null),
  constraint ai_message_settled_check check ((status = 'pending') = (settled_at is null))
);
create index ai_message_conversation_id_idx on ai_message (conversation_id, ordinal);
create unique index ai_message_job_id_key on ai_message (job_id) where job_id is not null;

-- What a model was used for. Costs are US dollars, to the last digit; null where the price is not known.
create table ai_usage (
  id bigint generated always as identity,
  user_id text not null,
  owner_id integer,
  conversation_id uuid,
  message_id uuid,
  action text not null,
  vendor text not null,
  model text not null,
  -- All tokens of the request, those from the provider's cache among them; all of the answer, with those of reasoning.
  input_tokens bigint not null,
  cached_tokens bigint not null default 0,
  output_tokens bigint not null,
  reasoning_tokens bigint not null default 0,
  cost numeric,
  -- Counted by us, because the provider did not say.
  estimated boolean not null,
  success boolean not null,
  created_at timestamptz not null default now(),
  constraint ai_usage_pkey primary key (id),
  constraint ai_usage_owner_id_fkey foreign key (owner_id) references account (id) on delete set null,
  constraint ai_usage_message_id_key unique (message_id),
  constraint ai_usage_tokens_check check (input_tokens >= 0 and output_tokens >= 0 and cached_tokens >= 0 and reasoning_tokens >= 0),
  constraint ai_usage_cost_check check (cost >= 0)
);
create index ai_usage_created_at_idx on ai_usage (created_at desc, id desc);
create index ai_usage_user_id_idx on ai_usage (user_id, created_at desc, id desc);
create index ai_usage_owner_id_idx on ai_usage (owner_id) where owner_id is not null;

create table ai_sentiment (
  conversation_id uuid not null,
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

-- The text that the readers of a turn have seen: the pieces since the last new beginning.
create function ai_turn_text(job_id uuid) returns text language sql stable as $$
  select coalesce(string_agg(e.data ->> 'content', '' order by e.seq), '') from job_event e
  where e.job_id = ai_turn_text.job_id and e.kind = 'chunk' and e.seq > coalesce((
    select max(r.seq) from job_event r where r.job_id = ai_turn_text.job_id and r.kind = 'restart'), 0)
$$;

-- Settles a turn with its job. What each attempt has used it has said in an event of its own; of one that was killed
-- before it could, the pieces that came are counted by their length, four characters to the token.
create function ai_turn_settled() returns trigger language plpgsql as $$
declare
  message uuid := (new.payload ->> 'message_id')::uuid;
  text_seen text := case when new.status = 'done' then new.result ->> 'content' else ai_turn_text(new.id) end;
  spent record;
begin
  select count(*) as attempts, coalesce(sum((u ->> 'input')::bigint), 0) as input, coalesce(sum((u ->> 'cached')::bigint), 0) as cached,
    coalesce(sum((u ->> 'output')::bigint), 0) as output, coalesce(sum((u ->> 'reasoning')::bigint), 0) as reasoning,
    case when count(*) = count(u ->> 'cost') then sum((u ->> 'cost')::numeric) end as cost,
    coalesce(bool_or((u ->> 'estimated')::boolean), false) as estimated,
    (array_agg(u ->> 'provider' order by seq desc))[1] as provider, (array_agg(u ->> 'model' order by seq desc))[1] as model
  into spent from (select e.seq, e.data as u from job_event e where e.job_id = new.id and e.kind = 'usage') said;

  if new.attempt > 0 then
    insert into ai_usage (user_id, owner_id, conversation_id, message_id, action, vendor, model, input_tokens, cached_tokens,
      output_tokens, reasoning_tokens, cost, estimated, success)
    values (new.payload ->> 'user_id', (select id from account where id = (new.payload ->> 'owner_id')::integer),
      (new.payload ->> 'conversation_id')::uuid, message, 'chat', coalesce(spent.provider, new.payload ->> 'provider'),
      coalesce(spent.model, new.payload ->> 'model'), spent.input, spent.cached,
      spent.output + case when spent.attempts = 0 then (length(text_seen) + 3) / 4 else 0 end, spent.reasoning,
      case when spent.attempts > 0 then spent.cost end, spent.estimated or spent.attempts = 0, new.status = 'done')
    on conflict on constraint ai_usage_message_id_key do nothing;
  end if;

  update ai_message set content = text_seen, settled_at = now(), response_ms = (new.result ->> 'response_time_ms')::float8,
    status = case new.status when 'done' then 'complete' when 'cancelled' then 'stopped' else 'failed' end,
    error_detail = new.error_detail, provider = coalesce(spent.provider, provider), model = coalesce(spent.model, model)
  where id = message and status = 'pending';
  if found then
    update ai_conversation set updated_at = now(),
      unscored_since = case when new.status = 'done' then now() else unscored_since end,
      provider = case when new.status = 'done' then spent.provider else provider end,
      model = case when new.status = 'done' then spent.model else model end,
      last_response_ms = case when new.status = 'done' then (new.result ->> 'response_time_ms')::float8 else last_response_ms end
    where id = (new.payload ->> 'conversation_id')::uuid;
  end if;
  return null;
end $$;
create trigger ai_turn_settled after update of status on job for each row
  when (new.name = 'ai.chat' and new.finished_at is not null and old.finished_at is null)
  execute function ai_turn_settled();
