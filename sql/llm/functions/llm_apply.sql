-- Makes the tables match a list: {vendors: [{id, name}], models: [{vendor, model_id, …, price}], skipped?: [{vendor,
-- model_id, reason}]}. Models that were skipped stay as they are. Changed prices are valid from `day`. Ignores a built-in list once another one has been applied. Returns the number of vendors and
-- models, and of models that are new, gone or repriced. Returns null if it ignored the list.
create or replace function llm_apply(list jsonb, list_source text, list_url text, day date) returns jsonb language plpgsql as $$
declare
  counts jsonb;
begin
  perform pg_advisory_xact_lock(hashtextextended('millrace.llm', 0));
  if list_source = 'built-in' and exists (select from llm_list where source = 'sync') then
    return null;
  end if;
  with given as materialized (
    select m.*, p.input, p.output, p.cache_read, p.cache_write, p.reasoning as reasoning_price, p.input_audio, p.output_audio,
      coalesce(p.tiers, '[]') as tiers,
      array(select u from unnest('{text,image,audio,video}'::text[]) u
        where u = any (m.input_modalities || m.output_modalities)) as modalities
    from jsonb_to_recordset(list -> 'models') m (vendor text, model_id text, title text, family text,
      context_window integer, max_output integer, input_modalities text[], output_modalities text[], reasoning boolean,
      temperature boolean, released_on date, disabled boolean, price jsonb)
    cross join jsonb_to_record(case when jsonb_typeof(m.price) = 'object' then m.price else '{}' end) p (input numeric,
      output numeric, cache_read numeric, cache_write numeric, reasoning numeric, input_audio numeric,
      output_audio numeric, tiers jsonb)
  ), vendors as (
    insert into llm_vendor as v (id, name)
    select g.id, g.name from jsonb_to_recordset(list -> 'vendors') g (id text, name text)
    on conflict (id) do update set name = excluded.name where v.name <> excluded.name
  ), models as (
    insert into llm_model as m (vendor, model_id, title, family, context_window, max_output, input_modalities,
      output_modalities, modalities, reasoning, temperature, released_on, disabled)
    select vendor, model_id, title, family, context_window, max_output, input_modalities, output_modalities, modalities,
      reasoning, coalesce(temperature, true), released_on, disabled from given
    on conflict (vendor, model_id) do update set title = excluded.title, family = excluded.family,
      context_window = excluded.context_window, max_output = excluded.max_output,
      input_modalities = excluded.input_modalities, output_modalities = excluded.output_modalities,
      modalities = excluded.modalities, reasoning = excluded.reasoning, temperature = excluded.temperature, released_on = excluded.released_on,
      disabled = excluded.disabled
    where m.* is distinct from excluded.*
  ), gone as (
    update llm_model m set disabled = true
    where not disabled and not exists (select from given g where g.vendor = m.vendor and g.model_id = m.model_id)
      and not exists (select from jsonb_to_recordset(list -> 'skipped') s (vendor text, model_id text)
        where s.vendor = m.vendor and coalesce(s.model_id, m.model_id) = m.model_id)
    returning 1
  ), prices as (
    insert into llm_price (vendor, model_id, valid_from, input, output, cache_read, cache_write, reasoning, input_audio,
      output_audio, tiers)
    select g.vendor, g.model_id, day, g.input, g.output, g.cache_read, g.cache_write, g.reasoning_price, g.input_audio,
      g.output_audio, g.tiers
    from given g left join lateral (
      select * from llm_price p where p.vendor = g.vendor and p.model_id = g.model_id and p.valid_from <= day
      order by p.valid_from desc limit 1) last on true
    where (g.input, g.output, g.cache_read, g.cache_write, g.reasoning_price, g.input_audio, g.output_audio, g.tiers)
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
  insert into llm_list (source, url, applied_at, skipped)
    values (list_source, list_url, now(), coalesce(list -> 'skipped', '[]'))
    on conflict (id) do update set source = excluded.source, url = excluded.url, applied_at = excluded.applied_at,
      skipped = excluded.skipped, refused_at = null, refusal = null;
  return counts;
end $$;
