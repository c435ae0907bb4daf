import { fail } from '../../sql/errors.ts'
import { type AiProvider, keySettingName } from './providers.ts'
import type { AiSettings } from './settings.ts'

/** Returns the API key of a provider. @throws fail('ai.missing_key') if it has none. */
export function requireApiKey({ endpoints }: Pick<AiSettings, 'endpoints'>, provider: AiProvider): string {
  const { apiKey } = endpoints[provider]
  if (apiKey === null) throw fail('ai.missing_key', { provider, setting: keySettingName(provider) })
  return apiKey
}
