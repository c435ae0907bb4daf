import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'

/** The catalog of language models. `llm/tables.sql` has its tables. */

/** A decimal number as text, in PostgreSQL's notation for `numeric`. */
const Decimal = z.string().regex(/^\d+(\.\d+)?$/)

const Rates = {
  /** US dollars per million tokens. */
  input: Decimal,
  output: Decimal,
  /** Price of input read from the provider's cache; null if it equals `input`. */
  cache_read: Decimal.nullish(),
  /** Price of reasoning output; null if it equals `output`. */
  reasoning: Decimal.nullish(),
}

const Price = z.object({
  ...Rates,
  /** Prices for all tokens of a request with more than `over` input tokens, sorted by `over`. */
  tiers: z.array(z.object({ ...Rates, over: z.number() })),
})
/** Price of a model on one day. */
export type Price = z.output<typeof Price>

const ModelTraits = z.object({
  /** Limits in tokens; 0 if unknown. */
  context_window: z.number(),
  max_output: z.number(),
  /** True if it accepts a temperature. */
  temperature: z.boolean(),
  /** True if it accepts pictures. */
  vision: z.boolean(),
})
export type ModelTraits = z.output<typeof ModelTraits>

const ModelFacts = z.object({ traits: ModelTraits.nullable(), price: Price.nullable() })
/** Traits and price of a model; null if the catalog does not have them. */
export type ModelFacts = z.output<typeof ModelFacts>

/** Returns what the catalog knows about a model, with the price of a UTC day (`YYYY-MM-DD`; null means today). */
export const readModelFacts = (
  vendor: string,
  modelId: string,
  day: string | null = null,
): Query<ModelFacts> =>
  sql.prepared('llm_model_facts', ModelFacts)`
    select
      (select json_build_object('context_window', context_window, 'max_output', max_output, 'temperature', temperature,
          'vision', 'image' = any(input_modalities))
        from llm_model where vendor = ${vendor} and model_id = ${modelId}) as traits,
      (select json_build_object('input', input::text, 'output', output::text, 'cache_read', cache_read::text,
          'reasoning', reasoning::text, 'tiers', tiers)
        from (
          select * from llm_price where vendor = ${vendor} and model_id = ${modelId}
            and valid_from <= coalesce(${day}::date, (now() at time zone 'UTC')::date)
          order by valid_from desc limit 1) last
        where input is not null) as price`

const ChosenModel = z.object({
  vendor: z.string(),
  model_id: z.string(),
  temperature: z.number().nullable(),
  max_tokens: z.number().nullable(),
})
/** A model that an admin has chosen. A null field stands for the value from the settings. */
export type ChosenModel = z.output<typeof ChosenModel>

/** Returns the model that an admin has chosen; no row if the model from the settings is in use. */
export const findChosenModel = (): Query<ChosenModel> =>
  sql.type(ChosenModel)`select vendor, model_id, temperature, max_tokens from llm_current`

/**
 * Result of applying a model list: the numbers of its vendors and models, and of added, removed and repriced models.
 */
export const AppliedList = z.strictObject({
  vendors: z.number(),
  models: z.number(),
  added: z.number(),
  gone: z.number(),
  repriced: z.number(),
})
export type AppliedList = z.output<typeof AppliedList>

/** A model in the format of a list. */
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
  /** False if the model refuses a temperature; absent means true. */
  readonly temperature?: boolean
  readonly released_on: string | null
  readonly disabled: boolean
  readonly price: (Price & ListedRates) | null
}

/** Listed prices that the costs of chats do not include. */
interface ListedRates {
  readonly cache_write?: string
  readonly input_audio?: string
  readonly output_audio?: string
}

/** An entry of a list that is invalid. The catalog keeps what it knows about it. */
export const SkippedEntry = z.strictObject({
  vendor: z.string(),
  /** Null if the whole vendor is invalid. */
  model_id: z.string().nullable(),
  reason: z.string(),
})
export type SkippedEntry = z.output<typeof SkippedEntry>

export interface ModelList {
  readonly vendors: readonly { readonly id: string; readonly name: string }[]
  readonly models: readonly ListedModel[]
  readonly skipped?: readonly SkippedEntry[]
}

/** Makes the catalog match a list. Changed prices are valid from `day` (UTC; null means today). */
export const applyList = (
  list: ModelList,
  url: string,
  day: string | null = null,
): Query<{ applied: AppliedList }> =>
  sql.type(z.object({ applied: AppliedList }))`
    select llm_apply(${JSON.stringify(list)}::jsonb, 'sync', ${url},
      coalesce(${day}::date, (now() at time zone 'UTC')::date)) as applied`

const KnownModel = z.object({
  vendor: z.string(),
  model_id: z.string(),
  input: z.number().nullable(),
  output: z.number().nullable(),
  /** True if the catalog comes from a synced list, false if it is the built-in one. */
  synced: z.boolean(),
})
export type KnownModel = z.output<typeof KnownModel>

/** Returns the enabled models of the given vendors with their latest prices. */
export const listKnownModels = (vendors: readonly string[]): Query<KnownModel> =>
  sql.type(KnownModel)`
    select m.vendor, m.model_id, p.input, p.output, exists (select from llm_list where source = 'sync') as synced
    from llm_model m left join lateral (
      select input, output from llm_price p where p.vendor = m.vendor and p.model_id = m.model_id
      order by valid_from desc limit 1) p on true
    where m.vendor = any(${sql.array([...vendors], 'text')}) and not m.disabled`

const ListSyncAttempt = z.object({ url: z.string(), hours: z.number() })

/** Returns the URL of the list that was last applied or refused, and the hours since then. */
export const findLastListAttempt = (): Query<z.output<typeof ListSyncAttempt>> =>
  sql.type(ListSyncAttempt)`
    select url, extract(epoch from now() - greatest(applied_at, refused_at)) / 3600 as hours from llm_list
    where url is not null`

/** Stores the reason why a list was refused. The next applied list clears it. */
export const storeListRefusal = (url: string, refusal: string): Query<unknown> =>
  sql.type(noRows)`update llm_list set url = ${url}, refused_at = now(), refusal = ${refusal}`

const ModelCandidate = z.object({ vendor: z.string(), disabled: z.boolean(), chats: z.boolean() })

/** Returns the models with an id at the given vendors. A lock prevents their deletion until the transaction ends. */
export const lockModelsById = (
  modelId: string,
  vendors: readonly string[],
): Query<z.output<typeof ModelCandidate>> =>
  sql.type(ModelCandidate)`
    select vendor, disabled, concat(family, ' ', model_id) !~ 'embed' and input_modalities @> '{text}'
      and output_modalities @> '{text}' as chats
    from llm_model where model_id = ${modelId} and vendor = any(${sql.array([...vendors], 'text')})
    order by vendor for key share`

/** Chooses a model. A null field stands for the value from the settings. */
export const chooseModel = (c: ChosenModel & { readonly chosenBy: number | null }): Query<unknown> =>
  sql.type(noRows)`
    insert into llm_current (vendor, model_id, temperature, max_tokens, chosen_by)
    values (${c.vendor}, ${c.model_id}, ${c.temperature}, ${c.max_tokens}, ${c.chosenBy})
    on conflict (id) do update set vendor = excluded.vendor, model_id = excluded.model_id,
      temperature = excluded.temperature, max_tokens = excluded.max_tokens, chosen_by = excluded.chosen_by,
      chosen_at = now()`

/** Makes the model from the settings current again. */
export const resetModel = (): Query<unknown> => sql.type(noRows)`delete from llm_current`
