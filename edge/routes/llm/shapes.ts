import { z } from 'zod'
import { SkippedEntry } from '../../../sql/llm/models.ts'
import { AI_PROVIDERS } from '../../../tasks/ai/providers.ts'
import { MODALITIES } from '../../../tasks/llm/modalities.ts'
import { syncCatalog } from '../../../tasks/llm/sync.task.ts'
import { Timestamp } from '../../pipeline/request/schemas.ts'

/** Price in US dollars per million tokens; null if it is unknown. */
const TokenPrice = z.number().min(0).nullable()

export const CatalogStatus = z
  .strictObject({
    vendor_count: z.int(),
    model_count: z.int(),
    deployment_count: z.int(),
    /** Number of prices, including past ones. */
    price_count: z.int(),
    top_vendors: z.array(z.strictObject({ name: z.string(), model_count: z.int() })),
    source: z.enum(['built-in', 'sync']),
    updated_at: Timestamp,
    refused_at: Timestamp.nullable(),
    refusal: z.string().nullable(),
    /** Number of invalid entries of the list, and the first 100 of them; absent if all are valid. */
    skipped_count: z.int().optional(),
    skipped: z.array(SkippedEntry).optional(),
  })
  .meta({ id: 'CatalogStatus' })

export const VendorCount = z
  .strictObject({ name: z.string(), title: z.string(), model_count: z.int() })
  .meta({ id: 'VendorCount' })

export const ModalityCount = z
  .strictObject({ modality: z.enum(MODALITIES), model_count: z.int() })
  .meta({ id: 'ModalityCount' })

export const Model = z
  .strictObject({
    model_id: z.string(),
    vendor: z.string(),
    title: z.string(),
    context_window: z.int(),
    max_output: z.int(),
    input_price: TokenPrice,
    output_price: TokenPrice,
    released_on: z.iso.date().nullable(),
    modalities: z.array(z.enum(MODALITIES)),
    disabled: z.boolean(),
  })
  .meta({ id: 'CatalogModel' })

const Rates = {
  input_price: TokenPrice,
  output_price: TokenPrice,
  /** Null if cached input costs the same as other input. */
  cache_read_price: TokenPrice,
  /** Null if reasoning costs the same as other output. */
  reasoning_price: TokenPrice,
}

export const Prices = z
  .array(
    z.strictObject({
      valid_from: z.iso.date(),
      ...Rates,
      cache_write_price: TokenPrice,
      input_audio_price: TokenPrice,
      output_audio_price: TokenPrice,
      /** Different prices for requests with more than `over` input tokens. */
      tiers: z.array(z.strictObject({ over: z.int(), ...Rates })),
    }),
  )
  .meta({ id: 'ModelPrices' })

export const CurrentModel = z
  .strictObject({
    provider: z.string(),
    model: z.string(),
    temperature: z.number(),
    max_tokens: z.int(),
    context_window: z.int().nullable(),
    input_price: TokenPrice,
    output_price: TokenPrice,
    modalities: z.array(z.enum(MODALITIES)),
    chosen: z.boolean(),
  })
  .meta({ id: 'CurrentModel' })

export const CurrentModelRequest = z
  .strictObject({
    model: z.string().min(1).max(200),
    provider: z.enum(AI_PROVIDERS).optional(),
    temperature: z.number().min(0).max(2).optional(),
    max_tokens: z.int().min(1).max(1_000_000).optional(),
  })
  .meta({ id: 'CurrentModelRequest' })

export const SyncResult = syncCatalog.result.meta({ id: 'CatalogSync' })
