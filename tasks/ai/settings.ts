import { z } from 'zod'
import type { Budgets } from '../../sql/budgets/budgets.ts'
import { AI_PROVIDERS, type AiProvider, keySettingName, PROVIDERS } from './providers.ts'

/** Settings of models and conversations. */

const numberField = (pattern: RegExp, what: string, fallback: number, type: z.ZodNumber) =>
  z.string().trim().regex(pattern, `must be ${what}`).transform(Number).pipe(type).default(fallback)
const wholeNumberField = (fallback: number, min: number, max: number) =>
  numberField(/^\d{1,10}$/, 'a whole number', fallback, z.int().min(min).max(max))

const apiKeyField = z.string().min(1).optional()
const baseUrlField = z
  .url({ protocol: /^https?$/ })
  .transform((given) => given.replace(/\/+$/, ''))
  .optional()

const tokenBudgetField = numberField(/^\d{1,15}$/, 'a whole number', 0, z.int().min(0))
const costBudgetField = numberField(/^\d{1,9}(\.\d{1,6})?$/, 'a number', 0, z.number().min(0))

export const aiShape = {
  AI_ENABLED: z.stringbool().default(true),
  AI_PROVIDER: z.enum(AI_PROVIDERS).default('openai'),
  AI_MODEL: z.string().min(1).max(200).optional(),
  AI_FALLBACK_MODEL: z.string().trim().min(1).max(200).optional(),
  AI_TEMPERATURE: numberField(/^\d{1,3}(\.\d{1,6})?$/, 'a number', 0.7, z.number().min(0).max(2)),
  AI_MAX_TOKENS: wholeNumberField(1000, 1, 1_000_000),
  AI_TIMEOUT_SECONDS: wholeNumberField(120, 1, 3600),
  AI_HISTORY_MESSAGES: wholeNumberField(20, 0, 200),
  AI_HISTORY_TOKENS: wholeNumberField(8000, 1, 1_000_000),
  AI_DOCUMENT_TOKENS: wholeNumberField(16_000, 1, 1_000_000),
  AI_SENTIMENT_ENABLED: z.stringbool().default(false),
  AI_BUDGET_DAY_TOKENS: tokenBudgetField,
  AI_BUDGET_DAY_COST: costBudgetField,
  AI_BUDGET_MONTH_TOKENS: tokenBudgetField,
  AI_BUDGET_MONTH_COST: costBudgetField,
  OPENAI_API_KEY: apiKeyField,
  OPENAI_BASE_URL: baseUrlField,
  ANTHROPIC_API_KEY: apiKeyField,
  ANTHROPIC_BASE_URL: baseUrlField,
  GOOGLE_API_KEY: apiKeyField,
  GOOGLE_BASE_URL: baseUrlField,
  GROQ_API_KEY: apiKeyField,
  GROQ_BASE_URL: baseUrlField,
  MISTRAL_API_KEY: apiKeyField,
  MISTRAL_BASE_URL: baseUrlField,
  COHERE_API_KEY: apiKeyField,
  COHERE_BASE_URL: baseUrlField,
}

type AiEnvironment = z.output<z.ZodObject<typeof aiShape>>

/** Endpoint of a provider; without a key, the provider is disabled. */
export interface Endpoint {
  readonly apiKey: string | null
  readonly baseUrl: string
}

export interface AiSettings {
  readonly enabled: boolean
  /** Default provider and model of agents, unless an admin chose another model. */
  readonly provider: AiProvider
  readonly model: string
  /** Model that answers if the first one fails, as in an agent's `model_id`; null if there is none. */
  readonly fallbackModel: string | null
  readonly temperature: number
  readonly maxTokens: number
  /** Time limit for each piece of an answer, including the first. */
  readonly timeoutSeconds: number
  /** Limits of the history that is sent with a question, in messages and tokens. */
  readonly historyMessages: number
  readonly historyTokens: number
  /** Limit of the text of documents in a question and its history, in tokens. */
  readonly documentTokens: number
  readonly sentimentEnabled: boolean
  /** Budgets of each account; 0 means no limit. */
  readonly budgets: Budgets
  readonly endpoints: Readonly<Record<AiProvider, Endpoint>>
}

/** A provider's model, with its endpoint and time limit. */
export interface AiModel {
  readonly provider: AiProvider
  readonly name: string
  readonly apiKey: string
  readonly baseUrl: string
  readonly timeoutSeconds: number
}

export function buildAiSettings(env: AiEnvironment): AiSettings {
  const endpoint = (provider: AiProvider): Endpoint => {
    const prefix = provider.toUpperCase() as Uppercase<AiProvider>
    return {
      apiKey: env[keySettingName(provider)] ?? null,
      baseUrl: env[`${prefix}_BASE_URL`] ?? PROVIDERS[provider].baseUrl,
    }
  }
  return {
    enabled: env.AI_ENABLED,
    provider: env.AI_PROVIDER,
    model: env.AI_MODEL ?? PROVIDERS[env.AI_PROVIDER].model,
    fallbackModel: env.AI_FALLBACK_MODEL ?? null,
    temperature: env.AI_TEMPERATURE,
    maxTokens: env.AI_MAX_TOKENS,
    timeoutSeconds: env.AI_TIMEOUT_SECONDS,
    historyMessages: env.AI_HISTORY_MESSAGES,
    historyTokens: env.AI_HISTORY_TOKENS,
    documentTokens: env.AI_DOCUMENT_TOKENS,
    sentimentEnabled: env.AI_SENTIMENT_ENABLED,
    budgets: {
      day_tokens: env.AI_BUDGET_DAY_TOKENS,
      day_cost: env.AI_BUDGET_DAY_COST,
      month_tokens: env.AI_BUDGET_MONTH_TOKENS,
      month_cost: env.AI_BUDGET_MONTH_COST,
    },
    endpoints: Object.fromEntries(
      AI_PROVIDERS.map((provider) => [provider, endpoint(provider)]),
    ) as unknown as AiSettings['endpoints'],
  }
}
