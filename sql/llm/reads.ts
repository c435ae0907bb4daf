import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Reads of the model catalog as public JSON. */

const TODAY = `(now() at time zone 'UTC')::date`
const PRICE_TODAY = `left join lateral (
    select input, output from llm_price p where p.vendor = m.vendor and p.model_id = m.model_id
      and p.valid_from <= ${TODAY} order by p.valid_from desc limit 1) p on true`

/** Counts of the catalog. `callable` lists the vendors that this deployment can call. */
export const readCatalogStatus: ReadStatement<[callable: readonly string[]]> = {
  name: 'llm_status',
  text: `
    with counted as (select vendor, count(*) as n from llm_model where not disabled group by vendor)
    select (jsonb_build_object('vendor_count', (select count(*) from counted),
      'model_count', (select coalesce(sum(n), 0) from counted),
      'deployment_count', (select coalesce(sum(n), 0) from counted where vendor = any($1::text[])),
      'price_count', (select count(*) from llm_price where input is not null),
      'top_vendors', (select coalesce(json_agg(json_build_object('name', vendor, 'model_count', n) order by n desc, vendor), '[]')
        from (select * from counted order by n desc, vendor limit 10) top),
      'source', l.source, 'updated_at', iso(l.applied_at), 'refused_at', iso(l.refused_at), 'refusal', l.refusal)
      || case when l.skipped = '[]' then '{}' else jsonb_build_object('skipped_count', jsonb_array_length(l.skipped),
        'skipped', jsonb_path_query_array(l.skipped, '$[0 to 99]')) end)::text
    from llm_list l`,
}

/** Vendors ordered by id. */
export const readVendors: ReadStatement<[limit: number]> = {
  name: 'llm_vendors',
  text: `
    select coalesce(json_agg(json_build_object('name', id, 'title', name, 'model_count', n) order by id), '[]')::text
    from (select v.id, v.name, count(*) as n from llm_vendor v join llm_model m on m.vendor = v.id and not m.disabled
      group by v.id order by v.id limit $1::int) vendors`,
}

/** Number of models per input or output modality. */
export const readModalities: ReadStatement<[modalities: readonly string[]]> = {
  name: 'llm_modalities',
  text: `
    select json_agg(json_build_object('modality', given.modality, 'model_count', coalesce(n, 0)) order by ordinal)::text
    from unnest($1::text[]) with ordinality given (modality, ordinal)
    left join (select u as modality, count(*) as n from llm_model, unnest(modalities) u where not disabled group by u)
      counted on counted.modality = given.modality`,
}

// Days from the release to the year 2100, so that every sort key ascends: latest models first, undated ones last.
const DAYS_BEFORE_2100 = `coalesce(date '2100-01-01' - m.released_on, 1000000)`
export const MODEL_ORDER = { [DAYS_BEFORE_2100]: 'bigint', 'm.vendor': 'text', 'm.model_id': 'text' } as const

/** Models, latest first. `pattern` is a substring of the id or title. A null filter matches any model. */
export const readModels: ReadStatement<
  [
    pattern: string | null,
    vendor: string | null,
    modality: string | null,
    withDisabled: boolean,
    ...page: PageValues,
  ]
> = {
  name: 'llm_models',
  text: buildArrayText({
    table: 'llm_model',
    row: 'm',
    parameters: 4,
    where: `($4::boolean or not m.disabled) and ($2::text is null or m.vendor = $2)
      and ($3::text is null or m.modalities @> array[$3])
      and ($1::text is null or strpos(lower(m.model_id), lower($1)) > 0 or strpos(lower(m.title), lower($1)) > 0)`,
    order: MODEL_ORDER,
    hasPageNumbers: false,
    direction: 'asc',
    join: PRICE_TODAY,
    item: `json_build_object('model_id', m.model_id, 'vendor', m.vendor, 'title', m.title,
      'context_window', m.context_window, 'max_output', m.max_output, 'input_price', p.input, 'output_price', p.output,
      'released_on', m.released_on, 'modalities', m.modalities, 'disabled', m.disabled)`,
  }),
}

/** Prices of a model, latest first; no row if the model does not exist. */
export const readPrices: ReadStatement<[vendor: string, modelId: string, limit: number]> = {
  name: 'llm_prices',
  text: `
    select (select coalesce(json_agg(json_build_object('valid_from', p.valid_from, 'input_price', p.input,
        'output_price', p.output, 'cache_read_price', p.cache_read, 'cache_write_price', p.cache_write,
        'reasoning_price', p.reasoning, 'input_audio_price', p.input_audio, 'output_audio_price', p.output_audio,
        'tiers', (select coalesce(json_agg(json_build_object('over', t.over, 'input_price', t.input, 'output_price', t.output,
            'cache_read_price', t.cache_read, 'reasoning_price', t.reasoning) order by t.over), '[]')
          from jsonb_to_recordset(p.tiers) t (over integer, input numeric, output numeric, cache_read numeric,
            reasoning numeric))) order by p.valid_from desc), '[]')
      from (select * from llm_price p where p.vendor = m.vendor and p.model_id = m.model_id
        order by p.valid_from desc limit $3::int) p)::text
    from llm_model m where m.vendor = $1 and m.model_id = $2`,
}

/** The current model with its catalog entry. The parameters describe the model from the settings. */
export const readCurrent: ReadStatement<
  [vendor: string, modelId: string, temperature: number, maxTokens: number]
> = {
  name: 'llm_current',
  text: `
    select json_build_object('provider', c.vendor, 'model', c.model_id, 'temperature', c.temperature,
      'max_tokens', c.max_tokens, 'context_window', m.context_window, 'input_price', p.input, 'output_price', p.output,
      'modalities', coalesce(m.modalities, '{}'), 'chosen', c.chosen)::text
    from (
      select vendor, model_id, coalesce(temperature, $3::numeric) as temperature,
        coalesce(max_tokens, $4::int) as max_tokens, true as chosen from llm_current
      union all
      select $1::text, $2::text, $3::numeric, $4::int, false where not exists (select from llm_current)) c
    left join llm_model m on m.vendor = c.vendor and m.model_id = c.model_id ${PRICE_TODAY}`,
}
