-- The catalog of language models: who offers which, what they can do, and what they cost since when.
--
-- A list comes as a whole, with the release or from models.dev, and llm_apply makes the tables say what it says. What a
-- list no longer has is disabled and keeps its prices, because what was used was paid for. Prices are US dollars per
-- million tokens. A price holds from its day until the day of the next one.

create table llm_vendor (
  -- As models.dev has it, which is also how the settings call a provider.
  id text not null,
  name text not null,
  constraint llm_vendor_pkey primary key (id),
  constraint llm_vendor_id_check check (id ~ '^[a-z0-9][a-z0-9._-]{0,99}$'),
  constraint llm_vendor_name_check check (length(name) between 1 and 200)
);

create table llm_model (
  vendor text not null,
  -- What the vendor's own endpoint calls it.
  model_id text not null,
  title text not null,
  family text,
  -- In tokens; 0 where that means nothing, as for speech.
  context_window integer not null,
  max_output integer not null,
  input_modalities text[] not null,
  output_modalities text[] not null,
  -- Both together.
  modalities text[] not null,
  reasoning boolean not null,
  released_on date,
  -- Withdrawn by its vendor, or gone from the list.
  disabled boolean not null,
  constraint llm_model_pkey primary key (vendor, model_id),
  constraint llm_model_vendor_fkey foreign key (vendor) references llm_vendor (id),
  constraint llm_model_model_id_check check (length(model_id) between 1 and 200),
  constraint llm_model_title_check check (length(title) between 1 and 300),
  constraint llm_model_limits_check check (context_window >= 0 and max_output >= 0),
  constraint llm_model_modalities_check check (modalities <@ '{text,image,audio,video}'
    and modalities @> (input_modalities || output_modalities) and modalities <@ (input_modalities || output_modalities))
);
create index llm_model_released_on_idx on llm_model (released_on desc nulls last, vendor, model_id);
create index llm_model_enabled_idx on llm_model (vendor) where not disabled;

create table llm_price (
  vendor text not null,
  model_id text not null,
  valid_from date not null,
  -- Both null: since this day nobody knows.
  input numeric,
  output numeric,
  -- Null: as any other input or output.
  cache_read numeric,
  cache_write numeric,
  reasoning numeric,
  input_audio numeric,
  output_audio numeric,
  -- [{over, input, output, cache_read?, …}]: prices of requests with more than so many tokens of input, in ascending
  -- order; as decimal strings, because JSON numbers are read as binary ones.
  tiers jsonb not null default '[]',
  constraint llm_price_pkey primary key (vendor, model_id, valid_from),
  constraint llm_price_model_fkey foreign key (vendor, model_id) references llm_model (vendor, model_id),
  constraint llm_price_known_check check ((input is null) = (output is null) and (input is not null
    or (cache_read is null and cache_write is null and reasoning is null and input_audio is null
      and output_audio is null and tiers = '[]'))),
  constraint llm_price_amount_check check (least(input, output, cache_read, cache_write, reasoning, input_audio,
    output_audio) >= 0),
  constraint llm_price_tiers_check check (jsonb_typeof(tiers) = 'array')
);

-- Which list the tables say, and what became of the last one that was refused: one row.
create table llm_list (
  id boolean not null default true,
  source text not null,
  url text,
  applied_at timestamptz not null,
  refused_at timestamptz,
  refusal text,
  constraint llm_list_pkey primary key (id),
  constraint llm_list_id_check check (id),
  constraint llm_list_source_check check (source in ('built-in', 'sync')),
  constraint llm_list_refusal_check check ((refused_at is null) = (refusal is null))
);

-- The model that an admin has chosen instead of the one of the settings: one row, or none.
create table llm_current (
  id boolean not null default true,
  vendor text not null,
  model_id text not null,
  -- Null: those of the settings.
  temperature numeric,
  max_tokens integer,
  chosen_by integer,
  chosen_at timestamptz not null default now(),
  constraint llm_current_pkey primary key (id),
  constraint llm_current_id_check check (id),
  constraint llm_current_model_fkey foreign key (vendor, model_id) references llm_model (vendor, model_id),
  constraint llm_current_chosen_by_fkey foreign key (chosen_by) references account (id) on delete set null,
  constraint llm_current_temperature_check check (temperature between 0 and 2),
  constraint llm_current_max_tokens_check check (max_tokens > 0)
);
create index llm_current_chosen_by_idx on llm_current (chosen_by);

-- Makes the tables say what a list says: {vendors: [{id, name}], models: [{vendor, model_id, …, price}]}. Prices that
-- differ from those before hold from `day` on. A built-in list does nothing once another one has been applied. Answers
-- how many there are, and how many of them are new, have gone, or have another price.
create function llm_apply(list jsonb, list_source text, list_url text, day date) returns jsonb language plpgsql as $$
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
end $$;

-- What there was on 2 July 2026, for as long as no list has been read: the models of the six providers, by models.dev (MIT, Copyright (c) 2025
-- models.dev; https://github.com/anomalyco/models.dev at f3fc69229). A clock that is behind does not make the prices unknown.
select llm_apply($list${"vendors": [{"id":"openai","name":"OpenAI"},{"id":"anthropic","name":"Anthropic"},{"id":"google","name":"Google"},{"id":"groq","name":"Groq"},{"id":"mistral","name":"Mistral"},{"id":"cohere","name":"Cohere"}], "models": [
{"vendor":"openai","model_id":"chatgpt-image-latest","title":"chatgpt-image-latest","family":"gpt-image","context_window":0,"max_output":0,"input_modalities":["text","image"],"output_modalities":["text","image"],"reasoning":false,"released_on":"2025-12-16","disabled":false,"price":null},
{"vendor":"openai","model_id":"gpt-3.5-turbo","title":"GPT-3.5-turbo","family":"gpt","context_window":16385,"max_output":4096,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2023-03-01","disabled":false,"price":{"input":"0.5","output":"1.5","cache_read":"0","tiers":[]}},
{"vendor":"openai","model_id":"gpt-4","title":"GPT-4","family":"gpt","context_window":8192,"max_output":8192,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2023-11-06","disabled":false,"price":{"input":"30","output":"60","tiers":[]}},
{"vendor":"openai","model_id":"gpt-4-turbo","title":"GPT-4 Turbo","family":"gpt","context_window":128000,"max_output":4096,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2023-11-06","disabled":false,"price":{"input":"10","output":"30","tiers":[]}},
{"vendor":"openai","model_id":"gpt-4.1","title":"GPT-4.1","family":"gpt","context_window":1047576,"max_output":32768,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-04-14","disabled":false,"price":{"input":"2","output":"8","cache_read":"0.5","tiers":[]}},
{"vendor":"openai","model_id":"gpt-4.1-mini","title":"GPT-4.1 mini","family":"gpt-mini","context_window":1047576,"max_output":32768,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-04-14","disabled":false,"price":{"input":"0.4","output":"1.6","cache_read":"0.1","tiers":[]}},
{"vendor":"openai","model_id":"gpt-4.1-nano","title":"GPT-4.1 nano","family":"gpt-nano","context_window":1047576,"max_output":32768,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-04-14","disabled":false,"price":{"input":"0.1","output":"0.4","cache_read":"0.025","tiers":[]}},
{"vendor":"openai","model_id":"gpt-4o","title":"GPT-4o","family":"gpt","context_window":128000,"max_output":16384,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-05-13","disabled":false,"price":{"input":"2.5","output":"10","cache_read":"1.25","tiers":[]}},
{"vendor":"openai","model_id":"gpt-4o-2024-05-13","title":"GPT-4o (2024-05-13)","family":"gpt","context_window":128000,"max_output":4096,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-05-13","disabled":false,"price":{"input":"5","output":"15","tiers":[]}},
{"vendor":"openai","model_id":"gpt-4o-2024-08-06","title":"GPT-4o (2024-08-06)","family":"gpt","context_window":128000,"max_output":16384,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-08-06","disabled":false,"price":{"input":"2.5","output":"10","cache_read":"1.25","tiers":[]}},
{"vendor":"openai","model_id":"gpt-4o-2024-11-20","title":"GPT-4o (2024-11-20)","family":"gpt","context_window":128000,"max_output":16384,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-11-20","disabled":false,"price":{"input":"2.5","output":"10","cache_read":"1.25","tiers":[]}},
{"vendor":"openai","model_id":"gpt-4o-mini","title":"GPT-4o mini","family":"gpt-mini","context_window":128000,"max_output":16384,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-07-18","disabled":false,"price":{"input":"0.15","output":"0.6","cache_read":"0.075","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5","title":"GPT-5","family":"gpt","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-08-07","disabled":false,"price":{"input":"1.25","output":"10","cache_read":"0.125","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5-chat-latest","title":"GPT-5 Chat (latest)","family":"gpt-codex","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-08-07","disabled":false,"price":{"input":"1.25","output":"10","cache_read":"0.125","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5-codex","title":"GPT-5-Codex","family":"gpt-codex","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-09-15","disabled":false,"price":{"input":"1.25","output":"10","cache_read":"0.125","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5-mini","title":"GPT-5 Mini","family":"gpt-mini","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-08-07","disabled":false,"price":{"input":"0.25","output":"2","cache_read":"0.025","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5-nano","title":"GPT-5 Nano","family":"gpt-nano","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-08-07","disabled":false,"price":{"input":"0.05","output":"0.4","cache_read":"0.005","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5-pro","title":"GPT-5 Pro","family":"gpt-pro","context_window":400000,"max_output":272000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-10-06","disabled":false,"price":{"input":"15","output":"120","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.1","title":"GPT-5.1","family":"gpt","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-11-13","disabled":false,"price":{"input":"1.25","output":"10","cache_read":"0.125","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.1-chat-latest","title":"GPT-5.1 Chat","family":"gpt-codex","context_window":128000,"max_output":16384,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-11-13","disabled":false,"price":{"input":"1.25","output":"10","cache_read":"0.125","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.1-codex","title":"GPT-5.1 Codex","family":"gpt-codex","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-11-13","disabled":false,"price":{"input":"1.25","output":"10","cache_read":"0.125","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.1-codex-max","title":"GPT-5.1 Codex Max","family":"gpt-codex","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-11-13","disabled":false,"price":{"input":"1.25","output":"10","cache_read":"0.125","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.1-codex-mini","title":"GPT-5.1 Codex mini","family":"gpt-codex","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-11-13","disabled":false,"price":{"input":"0.25","output":"2","cache_read":"0.025","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.2","title":"GPT-5.2","family":"gpt","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-12-11","disabled":false,"price":{"input":"1.75","output":"14","cache_read":"0.175","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.2-chat-latest","title":"GPT-5.2 Chat","family":"gpt-codex","context_window":128000,"max_output":16384,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-12-11","disabled":false,"price":{"input":"1.75","output":"14","cache_read":"0.175","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.2-codex","title":"GPT-5.2 Codex","family":"gpt-codex","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-12-11","disabled":false,"price":{"input":"1.75","output":"14","cache_read":"0.175","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.2-pro","title":"GPT-5.2 Pro","family":"gpt-pro","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-12-11","disabled":false,"price":{"input":"21","output":"168","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.3-chat-latest","title":"GPT-5.3 Chat (latest)","family":"gpt","context_window":128000,"max_output":16384,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2026-03-03","disabled":false,"price":{"input":"1.75","output":"14","cache_read":"0.175","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.3-codex","title":"GPT-5.3 Codex","family":"gpt-codex","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-02-05","disabled":false,"price":{"input":"1.75","output":"14","cache_read":"0.175","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.3-codex-spark","title":"GPT-5.3 Codex Spark","family":"gpt-codex-spark","context_window":128000,"max_output":32000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-02-05","disabled":false,"price":{"input":"1.75","output":"14","cache_read":"0.175","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.4","title":"GPT-5.4","family":"gpt","context_window":1050000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-03-05","disabled":false,"price":{"input":"2.5","output":"15","cache_read":"0.25","tiers":[{"input":"5","output":"22.5","cache_read":"0.5","over":272000}]}},
{"vendor":"openai","model_id":"gpt-5.4-mini","title":"GPT-5.4 mini","family":"gpt-mini","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-03-17","disabled":false,"price":{"input":"0.75","output":"4.5","cache_read":"0.075","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.4-nano","title":"GPT-5.4 nano","family":"gpt-nano","context_window":400000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-03-17","disabled":false,"price":{"input":"0.2","output":"1.25","cache_read":"0.02","tiers":[]}},
{"vendor":"openai","model_id":"gpt-5.4-pro","title":"GPT-5.4 Pro","family":"gpt-pro","context_window":1050000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-03-05","disabled":false,"price":{"input":"30","output":"180","tiers":[{"input":"60","output":"270","over":272000}]}},
{"vendor":"openai","model_id":"gpt-5.5","title":"GPT-5.5","family":"gpt","context_window":1050000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-04-23","disabled":false,"price":{"input":"5","output":"30","cache_read":"0.5","tiers":[{"input":"10","output":"45","cache_read":"1","over":272000}]}},
{"vendor":"openai","model_id":"gpt-5.5-pro","title":"GPT-5.5 Pro","family":"gpt-pro","context_window":1050000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-04-23","disabled":false,"price":{"input":"30","output":"180","tiers":[{"input":"60","output":"270","over":272000}]}},
{"vendor":"openai","model_id":"gpt-image-1","title":"gpt-image-1","family":"gpt-image","context_window":0,"max_output":0,"input_modalities":["text","image"],"output_modalities":["image"],"reasoning":false,"released_on":"2025-04-24","disabled":false,"price":null},
{"vendor":"openai","model_id":"gpt-image-1-mini","title":"gpt-image-1-mini","family":"gpt-image","context_window":0,"max_output":0,"input_modalities":["text","image"],"output_modalities":["text","image"],"reasoning":false,"released_on":"2025-09-26","disabled":false,"price":null},
{"vendor":"openai","model_id":"gpt-image-1.5","title":"gpt-image-1.5","family":"gpt-image","context_window":0,"max_output":0,"input_modalities":["text","image"],"output_modalities":["text","image"],"reasoning":false,"released_on":"2025-11-25","disabled":false,"price":null},
{"vendor":"openai","model_id":"gpt-image-2","title":"gpt-image-2","family":"gpt-image","context_window":0,"max_output":0,"input_modalities":["text","image"],"output_modalities":["image"],"reasoning":false,"released_on":"2026-04-21","disabled":false,"price":{"input":"5","output":"30","cache_read":"1.25","tiers":[]}},
{"vendor":"openai","model_id":"o1","title":"o1","family":"o","context_window":200000,"max_output":100000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2024-12-05","disabled":false,"price":{"input":"15","output":"60","cache_read":"7.5","tiers":[]}},
{"vendor":"openai","model_id":"o1-pro","title":"o1-pro","family":"o-pro","context_window":200000,"max_output":100000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-03-19","disabled":false,"price":{"input":"150","output":"600","tiers":[]}},
{"vendor":"openai","model_id":"o3","title":"o3","family":"o","context_window":200000,"max_output":100000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-04-16","disabled":false,"price":{"input":"2","output":"8","cache_read":"0.5","tiers":[]}},
{"vendor":"openai","model_id":"o3-deep-research","title":"o3-deep-research","family":"o","context_window":200000,"max_output":100000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2024-06-26","disabled":false,"price":{"input":"10","output":"40","cache_read":"2.5","tiers":[]}},
{"vendor":"openai","model_id":"o3-mini","title":"o3-mini","family":"o-mini","context_window":200000,"max_output":100000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":true,"released_on":"2024-12-20","disabled":false,"price":{"input":"1.1","output":"4.4","cache_read":"0.55","tiers":[]}},
{"vendor":"openai","model_id":"o3-pro","title":"o3-pro","family":"o-pro","context_window":200000,"max_output":100000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-06-10","disabled":false,"price":{"input":"20","output":"80","tiers":[]}},
{"vendor":"openai","model_id":"o4-mini","title":"o4-mini","family":"o-mini","context_window":200000,"max_output":100000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-04-16","disabled":false,"price":{"input":"1.1","output":"4.4","cache_read":"0.275","tiers":[]}},
{"vendor":"openai","model_id":"o4-mini-deep-research","title":"o4-mini-deep-research","family":"o-mini","context_window":200000,"max_output":100000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2024-06-26","disabled":false,"price":{"input":"2","output":"8","cache_read":"0.5","tiers":[]}},
{"vendor":"openai","model_id":"text-embedding-3-large","title":"text-embedding-3-large","family":"text-embedding","context_window":8191,"max_output":3072,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-01-25","disabled":false,"price":{"input":"0.13","output":"0","tiers":[]}},
{"vendor":"openai","model_id":"text-embedding-3-small","title":"text-embedding-3-small","family":"text-embedding","context_window":8191,"max_output":1536,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-01-25","disabled":false,"price":{"input":"0.02","output":"0","tiers":[]}},
{"vendor":"openai","model_id":"text-embedding-ada-002","title":"text-embedding-ada-002","family":"text-embedding","context_window":8192,"max_output":1536,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2022-12-15","disabled":false,"price":{"input":"0.1","output":"0","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-3-5-sonnet-20240620","title":"Claude Sonnet 3.5","family":"claude-sonnet","context_window":200000,"max_output":8192,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-06-20","disabled":true,"price":{"input":"3","output":"15","cache_read":"0.3","cache_write":"3.75","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-3-5-sonnet-20241022","title":"Claude Sonnet 3.5 v2","family":"claude-sonnet","context_window":200000,"max_output":8192,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-10-22","disabled":true,"price":{"input":"3","output":"15","cache_read":"0.3","cache_write":"3.75","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-3-7-sonnet-20250219","title":"Claude Sonnet 3.7","family":"claude-sonnet","context_window":200000,"max_output":64000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-02-19","disabled":true,"price":{"input":"3","output":"15","cache_read":"0.3","cache_write":"3.75","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-3-haiku-20240307","title":"Claude Haiku 3","family":"claude-haiku","context_window":200000,"max_output":4096,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-03-13","disabled":true,"price":{"input":"0.25","output":"1.25","cache_read":"0.03","cache_write":"0.3","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-3-opus-20240229","title":"Claude Opus 3","family":"claude-opus","context_window":200000,"max_output":4096,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-02-29","disabled":true,"price":{"input":"15","output":"75","cache_read":"1.5","cache_write":"18.75","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-3-sonnet-20240229","title":"Claude Sonnet 3","family":"claude-sonnet","context_window":200000,"max_output":4096,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-03-04","disabled":true,"price":{"input":"3","output":"15","cache_read":"0.3","cache_write":"0.3","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-fable-5","title":"Claude Fable 5","family":"claude-fable","context_window":1000000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-06-09","disabled":false,"price":{"input":"10","output":"50","cache_read":"1","cache_write":"12.5","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-haiku-4-5","title":"Claude Haiku 4.5 (latest)","family":"claude-haiku","context_window":200000,"max_output":64000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-10-15","disabled":false,"price":{"input":"1","output":"5","cache_read":"0.1","cache_write":"1.25","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-haiku-4-5-20251001","title":"Claude Haiku 4.5","family":"claude-haiku","context_window":200000,"max_output":64000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-10-15","disabled":false,"price":{"input":"1","output":"5","cache_read":"0.1","cache_write":"1.25","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-opus-4-0","title":"Claude Opus 4 (latest)","family":"claude-opus","context_window":200000,"max_output":32000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-05-22","disabled":false,"price":{"input":"15","output":"75","cache_read":"1.5","cache_write":"18.75","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-opus-4-1","title":"Claude Opus 4.1 (latest)","family":"claude-opus","context_window":200000,"max_output":32000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-08-05","disabled":false,"price":{"input":"15","output":"75","cache_read":"1.5","cache_write":"18.75","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-opus-4-1-20250805","title":"Claude Opus 4.1","family":"claude-opus","context_window":200000,"max_output":32000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-08-05","disabled":false,"price":{"input":"15","output":"75","cache_read":"1.5","cache_write":"18.75","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-opus-4-20250514","title":"Claude Opus 4","family":"claude-opus","context_window":200000,"max_output":32000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-05-22","disabled":false,"price":{"input":"15","output":"75","cache_read":"1.5","cache_write":"18.75","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-opus-4-5","title":"Claude Opus 4.5 (latest)","family":"claude-opus","context_window":200000,"max_output":64000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-11-24","disabled":false,"price":{"input":"5","output":"25","cache_read":"0.5","cache_write":"6.25","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-opus-4-5-20251101","title":"Claude Opus 4.5","family":"claude-opus","context_window":200000,"max_output":64000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-11-01","disabled":false,"price":{"input":"5","output":"25","cache_read":"0.5","cache_write":"6.25","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-opus-4-6","title":"Claude Opus 4.6","family":"claude-opus","context_window":1000000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-02-05","disabled":false,"price":{"input":"5","output":"25","cache_read":"0.5","cache_write":"6.25","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-opus-4-7","title":"Claude Opus 4.7","family":"claude-opus","context_window":1000000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-04-16","disabled":false,"price":{"input":"5","output":"25","cache_read":"0.5","cache_write":"6.25","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-opus-4-8","title":"Claude Opus 4.8","family":"claude-opus","context_window":1000000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-05-28","disabled":false,"price":{"input":"5","output":"25","cache_read":"0.5","cache_write":"6.25","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-sonnet-4-0","title":"Claude Sonnet 4 (latest)","family":"claude-sonnet","context_window":200000,"max_output":64000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-05-22","disabled":false,"price":{"input":"3","output":"15","cache_read":"0.3","cache_write":"3.75","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-sonnet-4-20250514","title":"Claude Sonnet 4","family":"claude-sonnet","context_window":200000,"max_output":64000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-05-22","disabled":false,"price":{"input":"3","output":"15","cache_read":"0.3","cache_write":"3.75","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-sonnet-4-5","title":"Claude Sonnet 4.5 (latest)","family":"claude-sonnet","context_window":200000,"max_output":64000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-09-29","disabled":false,"price":{"input":"3","output":"15","cache_read":"0.3","cache_write":"3.75","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-sonnet-4-5-20250929","title":"Claude Sonnet 4.5","family":"claude-sonnet","context_window":200000,"max_output":64000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-09-29","disabled":false,"price":{"input":"3","output":"15","cache_read":"0.3","cache_write":"3.75","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-sonnet-4-6","title":"Claude Sonnet 4.6","family":"claude-sonnet","context_window":1000000,"max_output":64000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-02-17","disabled":false,"price":{"input":"3","output":"15","cache_read":"0.3","cache_write":"3.75","tiers":[]}},
{"vendor":"anthropic","model_id":"claude-sonnet-5","title":"Claude Sonnet 5","family":"claude-sonnet","context_window":1000000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-06-30","disabled":false,"price":{"input":"2","output":"10","cache_read":"0.2","cache_write":"2.5","tiers":[]}},
{"vendor":"google","model_id":"gemini-2.0-flash","title":"Gemini 2.0 Flash","family":"gemini-flash","context_window":1048576,"max_output":8192,"input_modalities":["text","image","audio","video"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-12-11","disabled":true,"price":{"input":"0.1","output":"0.4","cache_read":"0.025","tiers":[]}},
{"vendor":"google","model_id":"gemini-2.0-flash-lite","title":"Gemini 2.0 Flash-Lite","family":"gemini-flash-lite","context_window":1048576,"max_output":8192,"input_modalities":["text","image","audio","video"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-12-11","disabled":true,"price":{"input":"0.075","output":"0.3","tiers":[]}},
{"vendor":"google","model_id":"gemini-2.5-flash","title":"Gemini 2.5 Flash","family":"gemini-flash","context_window":1048576,"max_output":65536,"input_modalities":["text","image","audio","video"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-06-17","disabled":false,"price":{"input":"0.3","output":"2.5","cache_read":"0.03","input_audio":"1","tiers":[]}},
{"vendor":"google","model_id":"gemini-2.5-flash-image","title":"Nano Banana","family":"gemini-flash","context_window":32768,"max_output":32768,"input_modalities":["text","image"],"output_modalities":["text","image"],"reasoning":true,"released_on":"2025-08-26","disabled":false,"price":{"input":"0.3","output":"30","cache_read":"0.075","tiers":[]}},
{"vendor":"google","model_id":"gemini-2.5-flash-lite","title":"Gemini 2.5 Flash-Lite","family":"gemini-flash-lite","context_window":1048576,"max_output":65536,"input_modalities":["text","image","audio","video"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-06-17","disabled":false,"price":{"input":"0.1","output":"0.4","cache_read":"0.01","input_audio":"0.3","tiers":[]}},
{"vendor":"google","model_id":"gemini-2.5-flash-preview-tts","title":"Gemini 2.5 Flash Preview TTS","family":"gemini-flash","context_window":8192,"max_output":16384,"input_modalities":["text"],"output_modalities":["audio"],"reasoning":false,"released_on":"2025-05-01","disabled":false,"price":{"input":"0.5","output":"10","tiers":[]}},
{"vendor":"google","model_id":"gemini-2.5-pro","title":"Gemini 2.5 Pro","family":"gemini-pro","context_window":1048576,"max_output":65536,"input_modalities":["text","image","audio","video"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-06-17","disabled":false,"price":{"input":"1.25","output":"10","cache_read":"0.125","tiers":[{"input":"2.5","output":"15","cache_read":"0.25","over":200000}]}},
{"vendor":"google","model_id":"gemini-2.5-pro-preview-tts","title":"Gemini 2.5 Pro Preview TTS","family":"gemini-flash","context_window":8192,"max_output":16384,"input_modalities":["text"],"output_modalities":["audio"],"reasoning":false,"released_on":"2025-05-01","disabled":false,"price":{"input":"1","output":"20","tiers":[]}},
{"vendor":"google","model_id":"gemini-3-flash-preview","title":"Gemini 3 Flash Preview","family":"gemini-flash","context_window":1048576,"max_output":65536,"input_modalities":["text","image","audio","video"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-12-17","disabled":false,"price":{"input":"0.5","output":"3","cache_read":"0.05","input_audio":"1","tiers":[]}},
{"vendor":"google","model_id":"gemini-3-pro-image-preview","title":"Nano Banana Pro","family":"gemini-pro","context_window":131072,"max_output":32768,"input_modalities":["text","image"],"output_modalities":["text","image"],"reasoning":true,"released_on":"2025-11-20","disabled":false,"price":{"input":"2","output":"120","tiers":[]}},
{"vendor":"google","model_id":"gemini-3-pro-preview","title":"Gemini 3 Pro Preview","family":"gemini-pro","context_window":1048576,"max_output":65536,"input_modalities":["text","image","audio","video"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-11-18","disabled":true,"price":{"input":"2","output":"12","cache_read":"0.2","tiers":[{"input":"4","output":"18","cache_read":"0.4","over":200000}]}},
{"vendor":"google","model_id":"gemini-3.1-flash-image-preview","title":"Nano Banana 2","family":"gemini-flash","context_window":65536,"max_output":65536,"input_modalities":["text","image"],"output_modalities":["text","image"],"reasoning":true,"released_on":"2026-02-26","disabled":false,"price":{"input":"0.5","output":"60","tiers":[]}},
{"vendor":"google","model_id":"gemini-3.1-flash-lite","title":"Gemini 3.1 Flash Lite","family":"gemini-flash-lite","context_window":1048576,"max_output":65536,"input_modalities":["text","image","audio","video"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-05-07","disabled":false,"price":{"input":"0.25","output":"1.5","cache_read":"0.025","input_audio":"0.5","tiers":[]}},
{"vendor":"google","model_id":"gemini-3.1-flash-lite-preview","title":"Gemini 3.1 Flash Lite Preview","family":"gemini-flash-lite","context_window":1048576,"max_output":65536,"input_modalities":["text","image","audio","video"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-03-03","disabled":true,"price":{"input":"0.25","output":"1.5","cache_read":"0.025","input_audio":"0.5","tiers":[]}},
{"vendor":"google","model_id":"gemini-3.1-pro-preview","title":"Gemini 3.1 Pro Preview","family":"gemini-pro","context_window":1048576,"max_output":65536,"input_modalities":["text","image","audio","video"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-02-19","disabled":false,"price":{"input":"2","output":"12","cache_read":"0.2","tiers":[{"input":"4","output":"18","cache_read":"0.4","over":200000}]}},
{"vendor":"google","model_id":"gemini-3.1-pro-preview-customtools","title":"Gemini 3.1 Pro Preview Custom Tools","family":"gemini-pro","context_window":1048576,"max_output":65536,"input_modalities":["text","image","audio","video"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-02-19","disabled":false,"price":{"input":"2","output":"12","cache_read":"0.2","tiers":[{"input":"4","output":"18","cache_read":"0.4","over":200000}]}},
{"vendor":"google","model_id":"gemini-3.5-flash","title":"Gemini 3.5 Flash","family":"gemini-flash","context_window":1048576,"max_output":65536,"input_modalities":["text","image","audio","video"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-05-19","disabled":false,"price":{"input":"1.5","output":"9","cache_read":"0.15","input_audio":"1.5","tiers":[]}},
{"vendor":"google","model_id":"gemini-embedding-001","title":"Gemini Embedding 001","family":"gemini","context_window":2048,"max_output":1,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-05-20","disabled":false,"price":{"input":"0.15","output":"0","tiers":[]}},
{"vendor":"google","model_id":"gemini-flash-latest","title":"Gemini Flash Latest","family":"gemini-flash","context_window":1048576,"max_output":65536,"input_modalities":["text","image","audio","video"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-09-25","disabled":false,"price":{"input":"0.3","output":"2.5","cache_read":"0.075","input_audio":"1","tiers":[]}},
{"vendor":"google","model_id":"gemini-flash-lite-latest","title":"Gemini Flash-Lite Latest","family":"gemini-flash-lite","context_window":1048576,"max_output":65536,"input_modalities":["text","image","audio","video"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-09-25","disabled":false,"price":{"input":"0.1","output":"0.4","cache_read":"0.025","tiers":[]}},
{"vendor":"google","model_id":"gemma-4-26b-a4b-it","title":"Gemma 4 26B A4B IT","family":"gemma","context_window":262144,"max_output":32768,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-04-02","disabled":false,"price":null},
{"vendor":"google","model_id":"gemma-4-31b-it","title":"Gemma 4 31B IT","family":"gemma","context_window":262144,"max_output":32768,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-04-02","disabled":false,"price":null},
{"vendor":"groq","model_id":"canopylabs/orpheus-arabic-saudi","title":"Canopy Labs Orpheus Arabic Saudi","family":"canopylabs","context_window":4000,"max_output":50000,"input_modalities":["text"],"output_modalities":["audio"],"reasoning":false,"released_on":"2025-12-16","disabled":false,"price":null},
{"vendor":"groq","model_id":"canopylabs/orpheus-v1-english","title":"Canopy Labs Orpheus V1 English","family":"canopylabs","context_window":4000,"max_output":50000,"input_modalities":["text"],"output_modalities":["audio"],"reasoning":false,"released_on":"2025-12-19","disabled":false,"price":null},
{"vendor":"groq","model_id":"groq/compound","title":"Compound","family":"groq","context_window":131072,"max_output":8192,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-09-04","disabled":false,"price":null},
{"vendor":"groq","model_id":"groq/compound-mini","title":"Compound Mini","family":"groq","context_window":131072,"max_output":8192,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-09-04","disabled":false,"price":null},
{"vendor":"groq","model_id":"llama-3.1-8b-instant","title":"Llama 3.1 8B","family":"llama","context_window":131072,"max_output":131072,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-07-23","disabled":false,"price":{"input":"0.05","output":"0.08","tiers":[]}},
{"vendor":"groq","model_id":"llama-3.3-70b-versatile","title":"Llama 3.3 70B","family":"llama","context_window":131072,"max_output":32768,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-12-06","disabled":false,"price":{"input":"0.59","output":"0.79","tiers":[]}},
{"vendor":"groq","model_id":"meta-llama/llama-4-scout-17b-16e-instruct","title":"Llama 4 Scout 17B 16E","family":"llama","context_window":131072,"max_output":8192,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-04-05","disabled":false,"price":{"input":"0.11","output":"0.34","tiers":[]}},
{"vendor":"groq","model_id":"meta-llama/llama-prompt-guard-2-22m","title":"Llama Prompt Guard 2 22M","family":"llama","context_window":512,"max_output":512,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-05-29","disabled":false,"price":{"input":"0.03","output":"0.03","tiers":[]}},
{"vendor":"groq","model_id":"meta-llama/llama-prompt-guard-2-86m","title":"Prompt Guard 2 86M","family":"llama","context_window":512,"max_output":512,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-05-29","disabled":false,"price":{"input":"0.04","output":"0.04","tiers":[]}},
{"vendor":"groq","model_id":"openai/gpt-oss-120b","title":"GPT OSS 120B","family":"gpt-oss","context_window":131072,"max_output":65536,"input_modalities":["text"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-08-05","disabled":false,"price":{"input":"0.15","output":"0.6","cache_read":"0.075","tiers":[]}},
{"vendor":"groq","model_id":"openai/gpt-oss-20b","title":"GPT OSS 20B","family":"gpt-oss","context_window":131072,"max_output":65536,"input_modalities":["text"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-08-05","disabled":false,"price":{"input":"0.075","output":"0.3","cache_read":"0.0375","tiers":[]}},
{"vendor":"groq","model_id":"openai/gpt-oss-safeguard-20b","title":"Safety GPT OSS 20B","family":"gpt-oss","context_window":131072,"max_output":65536,"input_modalities":["text"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-10-29","disabled":false,"price":{"input":"0.075","output":"0.3","tiers":[]}},
{"vendor":"groq","model_id":"qwen/qwen3-32b","title":"Qwen3-32B","family":"qwen","context_window":131072,"max_output":40960,"input_modalities":["text"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-06-11","disabled":false,"price":{"input":"0.29","output":"0.59","tiers":[]}},
{"vendor":"groq","model_id":"whisper-large-v3","title":"Whisper","family":"whisper","context_window":0,"max_output":0,"input_modalities":["audio"],"output_modalities":["text"],"reasoning":false,"released_on":"2023-09-01","disabled":false,"price":null},
{"vendor":"groq","model_id":"whisper-large-v3-turbo","title":"Whisper Large V3 Turbo","family":"whisper","context_window":0,"max_output":0,"input_modalities":["audio"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-10-01","disabled":false,"price":null},
{"vendor":"mistral","model_id":"codestral-latest","title":"Codestral (latest)","family":"codestral","context_window":256000,"max_output":4096,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-05-29","disabled":false,"price":{"input":"0.3","output":"0.9","tiers":[]}},
{"vendor":"mistral","model_id":"devstral-2512","title":"Devstral 2","family":"devstral","context_window":262144,"max_output":262144,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-12-09","disabled":true,"price":{"input":"0.4","output":"2","tiers":[]}},
{"vendor":"mistral","model_id":"devstral-latest","title":"Devstral 2","family":"devstral","context_window":262144,"max_output":262144,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-12-09","disabled":true,"price":{"input":"0.4","output":"2","tiers":[]}},
{"vendor":"mistral","model_id":"devstral-medium-2507","title":"Devstral Medium","family":"devstral","context_window":128000,"max_output":128000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-07-10","disabled":true,"price":{"input":"0.4","output":"2","tiers":[]}},
{"vendor":"mistral","model_id":"devstral-medium-latest","title":"Devstral 2 (latest)","family":"devstral","context_window":262144,"max_output":262144,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-12-02","disabled":true,"price":{"input":"0.4","output":"2","tiers":[]}},
{"vendor":"mistral","model_id":"devstral-small-2505","title":"Devstral Small 2505","family":"devstral","context_window":128000,"max_output":128000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-05-07","disabled":true,"price":{"input":"0.1","output":"0.3","tiers":[]}},
{"vendor":"mistral","model_id":"devstral-small-2507","title":"Devstral Small","family":"devstral","context_window":128000,"max_output":128000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-07-10","disabled":true,"price":{"input":"0.1","output":"0.3","tiers":[]}},
{"vendor":"mistral","model_id":"labs-devstral-small-2512","title":"Devstral Small 2","family":"devstral","context_window":256000,"max_output":256000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-12-09","disabled":true,"price":{"input":"0","output":"0","tiers":[]}},
{"vendor":"mistral","model_id":"magistral-medium-latest","title":"Magistral Medium (latest)","family":"magistral-medium","context_window":128000,"max_output":16384,"input_modalities":["text"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-03-17","disabled":false,"price":{"input":"2","output":"5","tiers":[]}},
{"vendor":"mistral","model_id":"magistral-small","title":"Magistral Small","family":"magistral-small","context_window":128000,"max_output":128000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-03-17","disabled":false,"price":{"input":"0.5","output":"1.5","tiers":[]}},
{"vendor":"mistral","model_id":"ministral-3b-latest","title":"Ministral 3B (latest)","family":"ministral","context_window":128000,"max_output":128000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-10-01","disabled":false,"price":{"input":"0.04","output":"0.04","tiers":[]}},
{"vendor":"mistral","model_id":"ministral-8b-latest","title":"Ministral 8B (latest)","family":"ministral","context_window":128000,"max_output":128000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-10-01","disabled":false,"price":{"input":"0.1","output":"0.1","tiers":[]}},
{"vendor":"mistral","model_id":"mistral-embed","title":"Mistral Embed","family":"mistral-embed","context_window":8000,"max_output":3072,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2023-12-11","disabled":false,"price":{"input":"0.1","output":"0","tiers":[]}},
{"vendor":"mistral","model_id":"mistral-large-2411","title":"Mistral Large 2.1","family":"mistral-large","context_window":131072,"max_output":16384,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-11-18","disabled":false,"price":{"input":"2","output":"6","tiers":[]}},
{"vendor":"mistral","model_id":"mistral-large-2512","title":"Mistral Large 3","family":"mistral-large","context_window":262144,"max_output":262144,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-11-01","disabled":false,"price":{"input":"0.5","output":"1.5","tiers":[]}},
{"vendor":"mistral","model_id":"mistral-large-latest","title":"Mistral Large (latest)","family":"mistral-large","context_window":262144,"max_output":262144,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-11-01","disabled":false,"price":{"input":"0.5","output":"1.5","tiers":[]}},
{"vendor":"mistral","model_id":"mistral-medium-2505","title":"Mistral Medium 3","family":"mistral-medium","context_window":131072,"max_output":131072,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-05-07","disabled":false,"price":{"input":"0.4","output":"2","tiers":[]}},
{"vendor":"mistral","model_id":"mistral-medium-2508","title":"Mistral Medium 3.1","family":"mistral-medium","context_window":262144,"max_output":262144,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-08-12","disabled":false,"price":{"input":"0.4","output":"2","tiers":[]}},
{"vendor":"mistral","model_id":"mistral-medium-2604","title":"Mistral Medium 3.5","family":"mistral-medium","context_window":262144,"max_output":262144,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-04-29","disabled":false,"price":{"input":"1.5","output":"7.5","tiers":[]}},
{"vendor":"mistral","model_id":"mistral-medium-latest","title":"Mistral Medium (latest)","family":"mistral-medium","context_window":262144,"max_output":262144,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-08-12","disabled":false,"price":{"input":"0.4","output":"2","tiers":[]}},
{"vendor":"mistral","model_id":"mistral-nemo","title":"Mistral Nemo","family":"mistral-nemo","context_window":128000,"max_output":128000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-07-01","disabled":false,"price":{"input":"0.15","output":"0.15","tiers":[]}},
{"vendor":"mistral","model_id":"mistral-small-2506","title":"Mistral Small 3.2","family":"mistral-small","context_window":128000,"max_output":16384,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-06-20","disabled":false,"price":{"input":"0.1","output":"0.3","tiers":[]}},
{"vendor":"mistral","model_id":"mistral-small-2603","title":"Mistral Small 4","family":"mistral-small","context_window":256000,"max_output":256000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-03-16","disabled":false,"price":{"input":"0.15","output":"0.6","tiers":[]}},
{"vendor":"mistral","model_id":"mistral-small-latest","title":"Mistral Small (latest)","family":"mistral-small","context_window":256000,"max_output":256000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-03-16","disabled":false,"price":{"input":"0.15","output":"0.6","tiers":[]}},
{"vendor":"mistral","model_id":"open-mistral-7b","title":"Mistral 7B","family":"mistral","context_window":8000,"max_output":8000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2023-09-27","disabled":false,"price":{"input":"0.25","output":"0.25","tiers":[]}},
{"vendor":"mistral","model_id":"open-mistral-nemo","title":"Open Mistral Nemo","family":"mistral-nemo","context_window":128000,"max_output":128000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-07-01","disabled":true,"price":{"input":"0.15","output":"0.15","tiers":[]}},
{"vendor":"mistral","model_id":"open-mixtral-8x22b","title":"Mixtral 8x22B","family":"mixtral","context_window":64000,"max_output":64000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-04-17","disabled":false,"price":{"input":"2","output":"6","tiers":[]}},
{"vendor":"mistral","model_id":"open-mixtral-8x7b","title":"Mixtral 8x7B","family":"mixtral","context_window":32000,"max_output":32000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2023-12-11","disabled":false,"price":{"input":"0.7","output":"0.7","tiers":[]}},
{"vendor":"mistral","model_id":"pixtral-12b","title":"Pixtral 12B","family":"pixtral","context_window":128000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-09-01","disabled":false,"price":{"input":"0.15","output":"0.15","tiers":[]}},
{"vendor":"mistral","model_id":"pixtral-large-latest","title":"Pixtral Large (latest)","family":"pixtral","context_window":128000,"max_output":128000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-11-01","disabled":false,"price":{"input":"2","output":"6","tiers":[]}},
{"vendor":"cohere","model_id":"c4ai-aya-expanse-32b","title":"Aya Expanse 32B","family":null,"context_window":128000,"max_output":4000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-10-24","disabled":false,"price":null},
{"vendor":"cohere","model_id":"c4ai-aya-expanse-8b","title":"Aya Expanse 8B","family":null,"context_window":8000,"max_output":4000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-10-24","disabled":false,"price":null},
{"vendor":"cohere","model_id":"c4ai-aya-vision-32b","title":"Aya Vision 32B","family":null,"context_window":16000,"max_output":4000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-03-04","disabled":false,"price":null},
{"vendor":"cohere","model_id":"c4ai-aya-vision-8b","title":"Aya Vision 8B","family":null,"context_window":16000,"max_output":4000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-03-04","disabled":false,"price":null},
{"vendor":"cohere","model_id":"command-a-03-2025","title":"Command A","family":"command-a","context_window":256000,"max_output":8000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-03-13","disabled":false,"price":{"input":"2.5","output":"10","tiers":[]}},
{"vendor":"cohere","model_id":"command-a-plus-05-2026","title":"Command A Plus","family":"command-a","context_window":128000,"max_output":64000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-05-20","disabled":false,"price":{"input":"2.5","output":"10","tiers":[]}},
{"vendor":"cohere","model_id":"command-a-reasoning-08-2025","title":"Command A Reasoning","family":"command-a","context_window":256000,"max_output":32000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":true,"released_on":"2025-08-21","disabled":false,"price":{"input":"2.5","output":"10","tiers":[]}},
{"vendor":"cohere","model_id":"command-a-translate-08-2025","title":"Command A Translate","family":"command-a","context_window":8000,"max_output":8000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-08-28","disabled":false,"price":{"input":"2.5","output":"10","tiers":[]}},
{"vendor":"cohere","model_id":"command-a-vision-07-2025","title":"Command A Vision","family":"command-a","context_window":128000,"max_output":8000,"input_modalities":["text","image"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-07-31","disabled":false,"price":{"input":"2.5","output":"10","tiers":[]}},
{"vendor":"cohere","model_id":"command-r-08-2024","title":"Command R","family":"command-r","context_window":128000,"max_output":4000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-08-30","disabled":false,"price":{"input":"0.15","output":"0.6","tiers":[]}},
{"vendor":"cohere","model_id":"command-r-plus-08-2024","title":"Command R+","family":"command-r","context_window":128000,"max_output":4000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-08-30","disabled":false,"price":{"input":"2.5","output":"10","tiers":[]}},
{"vendor":"cohere","model_id":"command-r7b-12-2024","title":"Command R7B","family":"command-r","context_window":128000,"max_output":4000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2024-12-02","disabled":false,"price":{"input":"0.0375","output":"0.15","tiers":[]}},
{"vendor":"cohere","model_id":"command-r7b-arabic-02-2025","title":"Command R7B Arabic","family":"command-r","context_window":128000,"max_output":4000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":false,"released_on":"2025-02-27","disabled":false,"price":{"input":"0.0375","output":"0.15","tiers":[]}},
{"vendor":"cohere","model_id":"north-mini-code-1-0","title":"North Mini Code","family":"north","context_window":256000,"max_output":64000,"input_modalities":["text"],"output_modalities":["text"],"reasoning":true,"released_on":"2026-06-09","disabled":false,"price":{"input":"0","output":"0","tiers":[]}}
]}$list$, 'built-in', null, least('2026-07-02', (now() at time zone 'UTC')::date));
