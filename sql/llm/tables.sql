-- The catalog of language models: their vendors, their capabilities, and their prices over time. Lists of models come
-- with the release or from models.dev, and are complete except for invalid entries. llm_apply makes the tables match a list. A model that
-- is missing from the list is disabled. It keeps its prices, because they determined the costs of past usage. Prices
-- are US dollars per million tokens. A price is valid from its day until the day of the next one.

create table llm_vendor (
  -- The models.dev id, by which the settings also name a provider.
  id text not null,
  name text not null,
  constraint llm_vendor_pkey primary key (id),
  constraint llm_vendor_id_check check (id ~ '^[a-z0-9][a-z0-9._-]{0,99}$'),
  constraint llm_vendor_name_check check (length(name) between 1 and 200)
);

create table llm_model (
  vendor text not null,
  -- The model id that the vendor's own endpoint uses.
  model_id text not null,
  title text not null,
  family text,
  -- Limits in tokens; 0 if a limit does not apply, such as for speech.
  context_window integer not null,
  max_output integer not null,
  input_modalities text[] not null,
  output_modalities text[] not null,
  -- The union of input and output modalities.
  modalities text[] not null,
  reasoning boolean not null,
  -- False if the model refuses a temperature.
  temperature boolean not null default true,
  released_on date,
  -- True if the vendor has withdrawn the model, or if the list no longer contains it.
  disabled boolean not null,
  constraint llm_model_pkey primary key (vendor, model_id),
  constraint llm_model_vendor_fkey foreign key (vendor) references llm_vendor (id),
  constraint llm_model_model_id_check check (length(model_id) between 1 and 200),
  constraint llm_model_title_check check (length(title) between 1 and 300),
  constraint llm_model_limits_check check (context_window >= 0 and max_output >= 0),
  constraint llm_model_modalities_check check (modalities <@ '{text,image,audio,video}'
    and modalities @> (input_modalities || output_modalities) and modalities <@ (input_modalities || output_modalities))
);
create index llm_model_listed_idx on llm_model (coalesce(date '2100-01-01' - released_on, 1000000), vendor, model_id);
create index llm_model_enabled_idx on llm_model (vendor) where not disabled;

create table llm_price (
  vendor text not null,
  model_id text not null,
  valid_from date not null,
  -- `input` and `output` are both null if the price is unknown from this day on.
  input numeric,
  output numeric,
  -- Null if the price equals that of plain input or output.
  cache_read numeric,
  cache_write numeric,
  reasoning numeric,
  input_audio numeric,
  output_audio numeric,
  -- Prices of requests with more than `over` input tokens, sorted by `over`: [{over, input, output, cache_read?, …}].
  -- The values are decimal strings, because JSON parsers read numbers as binary floats.
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

-- The list that the tables match, and the reason why a list was last refused. The table has one row.
create table llm_list (
  id boolean not null default true,
  source text not null,
  url text,
  applied_at timestamptz not null,
  -- Invalid entries of the list: [{vendor, model_id, reason}].
  skipped jsonb not null default '[]',
  refused_at timestamptz,
  refusal text,
  constraint llm_list_pkey primary key (id),
  constraint llm_list_id_check check (id),
  constraint llm_list_source_check check (source in ('built-in', 'sync')),
  constraint llm_list_refusal_check check ((refused_at is null) = (refusal is null))
);

-- The model that an admin chose instead of the one in the settings. The table has at most one row.
create table llm_current (
  id boolean not null default true,
  vendor text not null,
  model_id text not null,
  -- Null means the value from the settings.
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
