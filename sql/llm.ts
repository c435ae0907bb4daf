import { z } from 'zod'
import { nothing, type Query, sql } from './db.ts'
import type { ReadStatement } from './reader.ts'

/** The catalog of language models: see migration 000013. */

/** A decimal number as text, as PostgreSQL writes a `numeric`. */
const Decimal = z.string().regex(/^\d+(\.\d+)?$/)

const Rates = {
  /** US dollars per million tokens. */
  input: Decimal,
  output: Decimal,
  /** Of input that the provider had in its cache; null: as other input. */
  cache_read: Decimal.nullish(),
  /** Of output that is reasoning; null: as other output. */
  reasoning: Decimal.nullish(),
}

const Price = z.object({
  ...Rates,
  /** Prices of requests with more than `over` tokens of input, for all of their tokens; in ascending order. */
  tiers: z.array(z.object({ ...Rates, over: z.number() })),
})
/** What a model costs. */
export type Price = z.output<typeof Price>

/**
 * What a model cost on a day (`YYYY-MM-DD`, in UTC; null: today). No row where nobody knows: the model is not in the
 * catalog, or its price was not on that day.
 */
export const priceOn = (vendor: string, modelId: string, day: string | null): Query<Price> =>
  sql.type(Price)`
    select input::text, output::text, cache_read::text, reasoning::text, tiers from (
      select * from llm_price where vendor = ${vendor} and model_id = ${modelId}
        and valid_from <= coalesce(${day}::date, (now() at time zone 'UTC')::date)
      order by valid_from desc limit 1) last
    where input is not null`

const Chosen = z.object({
  vendor: z.string(),
  model_id: z.string(),
  temperature: z.number().nullable(),
  max_tokens: z.number().nullable(),
})
/** The model that an admin has chosen; what is null is the settings'. */
export type Chosen = z.output<typeof Chosen>

/** The model that an admin has chosen; no row: the one of the settings is current. */
export const chosenModel = (): Query<Chosen> =>
  sql.type(Chosen)`select vendor, model_id, temperature, max_tokens from llm_current`

/** What a list has changed: how many vendors and models it has, and how many are new, gone, or have another price. */
export const Applied = z.strictObject({
  vendors: z.number(),
  models: z.number(),
  added: z.number(),
  gone: z.number(),
  repriced: z.number(),
})
export type Applied = z.output<typeof Applied>

/** A vendor's model as lists have it. */
export interface ListedModel {
  readonly vendor: string
  readonly model_id: string
  readonly title: string
  readonly family: string | null
  readonly context_window: number
  readonly max_output: number
  readonly input_modalities: readonly string[]
  readonly output_modalities: readonly string[]
  readonly reasoning: boolean
  readonly released_on: string | null
  readonly disabled: boolean
  readonly price: (Price & ListedRates) | null
}

/** What is listed of a price and not in what a chat costs. */
interface ListedRates {
  readonly cache_write?: string
  readonly input_audio?: string
  readonly output_audio?: string
}

export interface ModelList {
  readonly vendors: readonly { readonly id: string; readonly name: string }[]
  readonly models: readonly ListedModel[]
}

/** Makes the catalog say what a list says; its prices hold from today (UTC), or from another day. */
export const applyList = (
  list: ModelList,
  url: string,
  day: string | null = null,
): Query<{ applied: Applied }> =>
  sql.type(z.object({ applied: Applied }))`
    select llm_apply(${JSON.stringify(list)}::jsonb, 'sync', ${url},
      coalesce(${day}::date, (now() at time zone 'UTC')::date)) as applied`

const KnownModel = z.object({
  vendor: z.string(),
  model_id: z.string(),
  input: z.number().nullable(),
  output: z.number().nullable(),
  /** The list that it is of was no built-in one. */
  synced: z.boolean(),
})
export type KnownModel = z.output<typeof KnownModel>

/** The enabled models of some vendors with their last prices. */
export const knownModels = (vendors: readonly string[]): Query<KnownModel> =>
  sql.type(KnownModel)`
    select m.vendor, m.model_id, p.input, p.output, exists (select from llm_list where source = 'sync') as synced
    from llm_model m left join lateral (
      select input, output from llm_price p where p.vendor = m.vendor and p.model_id = m.model_id
      order by valid_from desc limit 1) p on true
    where m.vendor = any(${sql.array([...vendors], 'text')}) and not m.disabled`

const Attempt = z.object({ url: z.string(), hours: z.number() })

/** The list that was applied or refused last, and how many hours ago. */
export const lastAttempt = (): Query<z.output<typeof Attempt>> =>
  sql.type(Attempt)`
    select url, extract(epoch from now() - greatest(applied_at, refused_at)) / 3600 as hours from llm_list
    where url is not null`

/** Notes why a list was refused; the next one that is applied clears it. */
export const noteRefusal = (url: string, refusal: string): Query<unknown> =>
  sql.type(nothing)`update llm_list set url = ${url}, refused_at = now(), refusal = ${refusal}`

const Candidate = z.object({ vendor: z.string(), disabled: z.boolean(), chats: z.boolean() })

/** Models of a name that some vendors have; the row of the one that is chosen later stays until then. */
export const modelsNamed = (modelId: string, vendors: readonly string[]): Query<z.output<typeof Candidate>> =>
  sql.type(Candidate)`
    select vendor, disabled, coalesce(family, model_id) !~ 'embed' and input_modalities @> '{text}'
      and output_modalities @> '{text}' as chats
    from llm_model where model_id = ${modelId} and vendor = any(${sql.array([...vendors], 'text')})
    order by vendor for key share`

/** Chooses a model; null: as the settings say. */
export const chooseModel = (c: Chosen & { readonly chosenBy: number | null }): Query<unknown> =>
  sql.type(nothing)`
    insert into llm_current (vendor, model_id, temperature, max_tokens, chosen_by)
    values (${c.vendor}, ${c.model_id}, ${c.temperature}, ${c.max_tokens}, ${c.chosenBy})
    on conflict (id) do update set vendor = excluded.vendor, model_id = excluded.model_id,
      temperature = excluded.temperature, max_tokens = excluded.max_tokens, chosen_by = excluded.chosen_by,
      chosen_at = now()`

/** The model of the settings is current again. */
export const unchooseModel = (): Query<unknown> => sql.type(nothing)`delete from llm_current`

// Reads of the edge.

const TODAY = `(now() at time zone 'UTC')::date`
const PRICE_TODAY = `left join lateral (
    select input, output from llm_price p where p.vendor = m.vendor and p.model_id = m.model_id
      and p.valid_from <= ${TODAY} order by p.valid_from desc limit 1) p on true`

/** The catalog in numbers: $1 vendors that can be called from here. */
export const readCatalogStatus: ReadStatement = {
  name: 'llm_status',
  text: `
    with counted as (select vendor, count(*) as n from llm_model where not disabled group by vendor)
    select json_build_object('vendor_count', (select count(*) from counted),
      'model_count', (select coalesce(sum(n), 0) from counted),
      'deployment_count', (select coalesce(sum(n), 0) from counted where vendor = any($1::text[])),
      'price_count', (select count(*) from llm_price where input is not null),
      'top_vendors', (select coalesce(json_agg(json_build_object('name', vendor, 'model_count', n) order by n desc, vendor), '[]')
        from (select * from counted order by n desc, vendor limit 10) top),
      'source', l.source, 'updated_at', iso(l.applied_at), 'refused_at', iso(l.refused_at), 'refusal', l.refusal)::text
    from llm_list l`,
}

/** Vendors by their names: $1 how many at most. */
export const readVendors: ReadStatement = {
  name: 'llm_vendors',
  text: `
    select coalesce(json_agg(json_build_object('name', id, 'title', name, 'model_count', n) order by id), '[]')::text
    from (select v.id, v.name, count(*) as n from llm_vendor v join llm_model m on m.vendor = v.id and not m.disabled
      group by v.id order by v.id limit $1::int) vendors`,
}

/** How many models have each modality, as input or output: $1 the modalities. */
export const readModalities: ReadStatement = {
  name: 'llm_modalities',
  text: `
    select json_agg(json_build_object('modality', given.modality, 'model_count', coalesce(n, 0)) order by place)::text
    from unnest($1::text[]) with ordinality given (modality, place)
    left join (select u as modality, count(*) as n from llm_model, unnest(modalities) u where not disabled group by u)
      counted on counted.modality = given.modality`,
}

/** Models, the latest first: $1 part of the id or title, $2 vendor, $3 modality (null: any), $4 limit, $5 also disabled ones. */
export const readModels: ReadStatement = {
  name: 'llm_models',
  text: `
    select coalesce(json_agg(json_build_object('model_id', m.model_id, 'vendor', m.vendor, 'title', m.title,
      'context_window', m.context_window, 'max_output', m.max_output, 'input_price', p.input, 'output_price', p.output,
      'released_on', m.released_on, 'modalities', m.modalities, 'disabled', m.disabled)
      order by m.released_on desc nulls last, m.vendor, m.model_id), '[]')::text
    from (
      select * from llm_model m
      where ($5::boolean or not m.disabled) and ($2::text is null or m.vendor = $2)
        and ($3::text is null or m.modalities @> array[$3])
        and ($1::text is null or strpos(lower(m.model_id), lower($1)) > 0 or strpos(lower(m.title), lower($1)) > 0)
      order by m.released_on desc nulls last, m.vendor, m.model_id limit $4::int) m ${PRICE_TODAY}`,
}

/** What a model has cost, the latest price first; null when there is no such model: $1 vendor, $2 model id, $3 limit. */
export const readPrices: ReadStatement = {
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

/** The current model with what the catalog knows of it. Of the settings: $1 vendor, $2 model, $3 temperature, $4 most tokens. */
export const readCurrent: ReadStatement = {
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
