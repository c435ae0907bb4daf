import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import type { ListedModel, ModelList, Price, SkippedEntry } from '../../sql/llm/models.ts'
import { MODALITIES } from './modalities.ts'

/**
 * Reads lists in the format of https://models.dev/api.json (schema: packages/core/src/schema.ts in
 * https://github.com/anomalyco/models.dev). Unknown fields are ignored. An invalid known field costs its entry,
 * never another one.
 */

// Rejects higher prices: the most expensive model so far costs 600 dollars per million tokens.
const MAX_DOLLARS = 10_000
const MAX_TOKENS = 2_000_000_000

/** Defines a text field. Rejects strings that JSON can express but PostgreSQL cannot store. */
const textField = (max: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(max)
    .refine((text) => text.isWellFormed() && !text.includes('\0'), 'has invalid characters')
const priceField = z.number().min(0).max(MAX_DOLLARS)
const tokenCountField = z.int().min(0).max(MAX_TOKENS)
const isDay = (text: string): boolean => z.iso.date().safeParse(text).success

const Cost = z.object({
  input: priceField,
  output: priceField,
  cache_read: priceField.optional(),
  cache_write: priceField.optional(),
  reasoning: priceField.optional(),
  input_audio: priceField.optional(),
  output_audio: priceField.optional(),
})
type Cost = z.output<typeof Cost>

const Model = z.object({
  id: textField(200),
  name: textField(300),
  family: textField(200).optional(),
  reasoning: z.boolean().default(false),
  /** False if the model refuses a temperature. */
  temperature: z.boolean().default(true),
  /** A day or a month; real lists contain invalid days, which become null. */
  release_date: z
    .string()
    .max(100)
    .transform((text) => (/^\d{4}-\d{2}$/.test(text) ? `${text}-01` : text))
    .transform((text) => (isDay(text) ? text : null))
    .optional(),
  modalities: z.object({ input: z.array(z.string()).max(20), output: z.array(z.string()).max(20) }),
  limit: z.object({ context: tokenCountField, output: tokenCountField.default(0) }),
  status: z.string().optional(),
  cost: Cost.extend({
    tiers: z
      .array(Cost.extend({ tier: z.object({ type: z.string().default('context'), size: tokenCountField }) }))
      .max(20)
      .optional(),
    /** The only price tier in lists that predate `tiers`. */
    context_over_200k: Cost.optional(),
  }).optional(),
})
type Model = z.output<typeof Model>

const Vendor = z.object({
  id: z.string().regex(/^[a-z0-9][a-z0-9._-]{0,99}$/, 'must be lower-case letters, digits, ., _ and -'),
  name: textField(200),
  models: z.record(z.string(), z.unknown()),
})

const List = z.record(z.string(), z.unknown())

/**
 * Parses a list. Leaves out invalid vendors and models, and names them in `skipped`.
 * @throws fail('llm.list_refused') if it is no list.
 */
export function parseModelsDev(text: string): ModelList {
  const parsed = List.safeParse(parseJson(text))
  if (!parsed.success) throw createListRefusal(`the list: ${parsed.error.issues[0]!.message}`)
  const vendors: ModelList['vendors'][number][] = []
  const models: ListedModel[] = []
  const skipped: SkippedEntry[] = []
  for (const [key, entry] of Object.entries(parsed.data)) {
    const vendor = parseEntry(Vendor, key, entry)
    if ('reason' in vendor) {
      skipped.push({ vendor: toName(key), model_id: null, reason: vendor.reason })
      continue
    }
    vendors.push({ id: key, name: vendor.value.name })
    for (const [modelKey, modelEntry] of Object.entries(vendor.value.models)) {
      const model = parseEntry(Model, modelKey, modelEntry)
      if ('reason' in model) skipped.push({ vendor: key, model_id: toName(modelKey), reason: model.reason })
      else models.push(toListedModel(key, model.value))
    }
  }
  return { vendors, models, ...(skipped.length === 0 ? {} : { skipped }) }
}

/** Parses the entry under a key, or returns the first problem with its path. */
function parseEntry<T extends { readonly id: string }>(
  schema: z.ZodType<T>,
  key: string,
  entry: unknown,
): { readonly value: T } | { readonly reason: string } {
  const parsed = schema.safeParse(entry)
  if (parsed.success)
    return parsed.data.id === key ? { value: parsed.data } : { reason: toName(`its id is ${parsed.data.id}`) }
  const { path, message } = parsed.error.issues[0]!
  const where = path.map(String).join(' / ')
  return { reason: toName(where === '' ? message : `${where}: ${message}`) }
}

/** Returns a text of the list as PostgreSQL can store it. */
const toName = (text: string): string => text.replaceAll('\0', '').toWellFormed().slice(0, 300)

/** Creates the error that rejects a whole list. */
export const createListRefusal = (reason: string) =>
  fail('llm.list_refused', { reason: reason.slice(0, 500) })

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw createListRefusal('it is not JSON')
  }
}

function toListedModel(vendor: string, model: Model): ListedModel {
  return {
    vendor,
    model_id: model.id,
    title: model.name,
    family: model.family ?? null,
    context_window: model.limit.context,
    max_output: model.limit.output,
    input_modalities: filterModalities(model.modalities.input),
    output_modalities: filterModalities(model.modalities.output),
    reasoning: model.reasoning,
    ...(model.temperature ? {} : { temperature: false }),
    released_on: model.release_date ?? null,
    disabled: model.status === 'deprecated',
    price: model.cost === undefined ? null : priceOf(model.cost),
  }
}

/**
 * Returns the modalities that Millrace supports. Omits file types such as `pdf`, which models receive as text and
 * images.
 */
const filterModalities = (given: readonly string[]): string[] =>
  MODALITIES.filter((one) => given.includes(one))

/**
 * Returns the price of a model. Null if it depends on an unsupported condition, because no price is better than a wrong
 * one.
 */
function priceOf({
  tiers,
  context_over_200k: legacy,
  ...cost
}: NonNullable<Model['cost']>): ListedModel['price'] {
  const listedTiers =
    tiers ?? (legacy === undefined ? [] : [{ ...legacy, tier: { type: 'context', size: 200_000 } }])
  if (listedTiers.some(({ tier }) => tier.type !== 'context')) return null
  const sizes = new Set(listedTiers.map(({ tier }) => tier.size))
  if (sizes.size < listedTiers.length) return null
  return {
    ...ratesOf(cost),
    tiers: listedTiers
      .map(({ tier, ...rates }) => ({ ...ratesOf(rates), over: tier.size }))
      .sort((a, b) => a.over - b.over),
  }
}

function ratesOf(cost: Cost): Omit<Price, 'tiers'> {
  const rates = Object.entries(cost).filter((entry): entry is [string, number] => entry[1] !== undefined)
  return Object.fromEntries(rates.map(([name, dollars]) => [name, toDecimal(dollars)])) as never
}

/** Returns the shortest decimal that parses to this number, as in the JSON, without an exponent. */
function toDecimal(n: number): string {
  const text = String(n)
  return text.includes('e') ? n.toFixed(20).replace(/\.?0+$/, '') : text
}
