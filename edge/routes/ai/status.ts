import { z } from 'zod'
import { readAiState } from '../../../sql/ai/conversations.ts'
import { type ModelRef, resolveFallback, resolveModel } from '../../../tasks/ai/model.ts'
import { AI_PROVIDERS, keySettingName } from '../../../tasks/ai/providers.ts'
import type { AiSettings } from '../../../tasks/ai/settings.ts'
import { VERSION } from '../../openapi/openapi.ts'
import { route } from '../../pipeline/route.ts'
import { DEFAULT_AGENT } from './turn.ts'

const SERVICE = 'ai'

const Health = z
  .strictObject({
    service: z.string(),
    /** `error` if the database state cannot be read. */
    status: z.enum(['healthy', 'unhealthy', 'error']),
    enabled: z.boolean(),
    provider: z.string(),
    model: z.string(),
    agent_ready: z.boolean(),
    total_conversations: z.int(),
    configuration_valid: z.boolean(),
    validation_errors: z.array(z.string()),
  })
  .meta({ id: 'AiHealth' })

const ServiceState = z.object({
  conversations: z.int(),
  agent: z
    .object({
      is_active: z.boolean(),
      model_id: z.string().nullable(),
      fallback_model_id: z.string().nullable(),
    })
    .nullable(),
  chosen: z.object({ vendor: z.string(), model_id: z.string() }).nullable(),
})

export const healthRoute = route({
  method: 'get',
  path: '/health',
  summary: 'Get the health of the AI service',
  description: `provider and model answer by default. \`unhealthy\`: the service is disabled or not configured, or its \
default agent is inactive. \`error\`: the state cannot be read from the database. A missing key of the fallback model is one of the \
\`validation_errors\`, but the service stays \`healthy\`. Does not call the provider.`,
  response: Health,
  reads: 'statistics',
  mayLag: true,
  handle: async ({ edge, reader }) => {
    const { ai } = edge.settings
    const text = await reader.text(readAiState, [DEFAULT_AGENT]).catch((error) => {
      edge.log.warn({ err: error }, 'Reading the AI service state failed')
      return null
    })
    const state = text === null ? null : ServiceState.parse(JSON.parse(text))
    const model = resolveModel(ai, state?.chosen ?? null, state?.agent?.model_id ?? null)
    const own = listProblems(ai, model)
    const fallback = resolveFallback(
      ai,
      state?.chosen ?? null,
      state?.agent?.fallback_model_id ?? null,
      model,
    )
    const problems = [
      ...own,
      ...(fallback === null ? [] : listProblems(ai, fallback, 'the fallback provider ')),
    ]
    const ready = ai.enabled && own.length === 0 && state?.agent?.is_active === true
    const status = state === null ? 'error' : ready ? 'healthy' : 'unhealthy'
    return {
      service: SERVICE,
      status,
      enabled: ai.enabled,
      ...model,
      agent_ready: ready,
      total_conversations: state?.conversations ?? 0,
      configuration_valid: problems.length === 0,
      validation_errors: problems,
    } as const
  },
})

function listProblems(ai: AiSettings, { provider }: ModelRef, role = ''): string[] {
  if (ai.endpoints[provider].apiKey !== null) return []
  const name = role === '' ? `${provider} provider` : `${role}${provider}`
  return [`Missing API key for ${name}. Set ${keySettingName(provider)} environment variable.`]
}

const Version = z
  .strictObject({
    service: z.string(),
    engine: z.string(),
    version: z.string(),
    features: z.array(z.string()),
    providers_supported: z.array(z.string()),
  })
  .meta({ id: 'AiVersion' })

export const versionRoute = route({
  method: 'get',
  path: '/version',
  summary: 'Get version and features of the AI service',
  auth: 'public',
  response: Version,
  handle: () => ({
    service: SERVICE,
    engine: 'millrace',
    version: VERSION,
    features: [
      'chat',
      'conversation_management',
      'multi_provider_support',
      'health_monitoring',
      'api_endpoints',
      'cli_commands',
    ],
    providers_supported: [...AI_PROVIDERS],
  }),
})
