/**
 * Model providers, which serve OpenAI's protocol with deviations. Avoid heavy imports here, because the edge loads this
 * module.
 */

export const AI_PROVIDERS = ['openai', 'anthropic', 'google', 'groq', 'mistral', 'cohere'] as const
export type AiProvider = (typeof AI_PROVIDERS)[number]

/** Longest pause that a provider may ask for while a person waits. */
export const MAX_INTERACTIVE_PAUSE_SECONDS = 5

export interface ProviderProfile {
  readonly baseUrl: string
  /** Default model: small, and able to read images. */
  readonly model: string
  /** Name of the field that limits the length of an answer. Some providers reject the other name. */
  readonly lengthField: 'max_tokens' | 'max_completion_tokens'
  /** True if a stream reports usage only with `stream_options`, which other providers reject. */
  readonly requiresUsageOption: boolean
  /** True if usage counts reasoning in the total, but not in the output. */
  readonly hidesReasoning: boolean
}

/**
 * Sources: platform.openai.com/docs/api-reference/chat, docs.anthropic.com/en/api/openai-sdk,
 * ai.google.dev/gemini-api/docs/openai, console.groq.com/docs/openai, docs.mistral.ai/api,
 * docs.cohere.com/docs/compatibility-api. Mistral and Cohere answer unknown fields with 422, and always report the
 * usage of a stream.
 */
export const PROVIDERS: Readonly<Record<AiProvider, ProviderProfile>> = {
  openai: {
    baseUrl: 'https://api.openai.com/v1',
    model: 'gpt-4o-mini',
    lengthField: 'max_completion_tokens',
    requiresUsageOption: true,
    hidesReasoning: false,
  },
  anthropic: {
    baseUrl: 'https://api.anthropic.com/v1',
    model: 'claude-haiku-4-5',
    lengthField: 'max_tokens',
    requiresUsageOption: true,
    hidesReasoning: false,
  },
  google: {
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    model: 'gemini-2.5-flash',
    lengthField: 'max_tokens',
    requiresUsageOption: true,
    hidesReasoning: true,
  },
  groq: {
    baseUrl: 'https://api.groq.com/openai/v1',
    model: 'meta-llama/llama-4-scout-17b-16e-instruct',
    lengthField: 'max_completion_tokens',
    requiresUsageOption: true,
    hidesReasoning: false,
  },
  mistral: {
    baseUrl: 'https://api.mistral.ai/v1',
    model: 'mistral-small-latest',
    lengthField: 'max_tokens',
    requiresUsageOption: false,
    hidesReasoning: false,
  },
  cohere: {
    baseUrl: 'https://api.cohere.ai/compatibility/v1',
    model: 'command-a-vision-07-2025',
    lengthField: 'max_tokens',
    requiresUsageOption: false,
    hidesReasoning: false,
  },
}

export function isAiProvider(name: string): name is AiProvider {
  return (AI_PROVIDERS as readonly string[]).includes(name)
}

/** Returns the name of the setting that holds a provider's key. */
export function keySettingName<P extends AiProvider>(provider: P): `${Uppercase<P>}_API_KEY` {
  return `${provider.toUpperCase() as Uppercase<P>}_API_KEY`
}
