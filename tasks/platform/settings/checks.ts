import { checkAccountSettings } from '../../accounts/settings.ts'
import { isAiProvider, keySettingName } from '../../ai/providers.ts'
import { checkCommsSettings } from '../../comms/settings.ts'
import { checkBlobSettings } from '../../documents/blobs/settings.ts'
import { isLoopback } from '../addresses.ts'
import { isGuessable, splitList } from './fields.ts'

/** Checks of settings that the schema of a single value cannot make. */

/** Checks combinations of settings by their raw values, so that it reports them even if other values are invalid. */
export function checkCombinations(env: Readonly<Record<string, string | undefined>>): string[] {
  const problems = checkProduction(env)
  const vision = env.VISION_PROVIDER
  if (vision !== undefined && isAiProvider(vision) && env[keySettingName(vision)] === undefined)
    problems.push(`VISION_PROVIDER: needs ${keySettingName(vision)}`)
  if (env.METRICS_PORT !== undefined && env.METRICS_PORT === (env.PORT ?? '8000'))
    problems.push('METRICS_PORT: must differ from PORT')
  if (listPreviousKeys(env).some((key) => key === env.SECRET_KEY))
    problems.push('SECRET_KEYS_PREVIOUS: must not contain SECRET_KEY')
  return [...problems, ...checkAccountSettings(env), ...checkCommsSettings(env), ...checkBlobSettings(env)]
}

/** Returns the keys of SECRET_KEYS_PREVIOUS. */
const listPreviousKeys = (env: Readonly<Record<string, string | undefined>>): string[] =>
  splitList(env.SECRET_KEYS_PREVIOUS ?? '')

/** Checks the requirements of production by raw values. Returns the problems. */
function checkProduction(env: Readonly<Record<string, string | undefined>>): string[] {
  if (env.NODE_ENV !== 'production') return []
  const problems: string[] = []
  if (env.SECRET_KEY === undefined)
    problems.push('SECRET_KEY: required in production (32 characters or more)')
  else if (isGuessable(env.SECRET_KEY))
    problems.push('SECRET_KEY: must be random in production; `openssl rand -hex 32` prints a key')
  if (listPreviousKeys(env).some(isGuessable))
    problems.push('SECRET_KEYS_PREVIOUS: must be random in production, like SECRET_KEY')
  if (env.DATABASE_URL === undefined) problems.push('DATABASE_URL: required in production')
  if (!isLoopback(env.HOST ?? '127.0.0.1') && !env.PUBLIC_BASE_URL && !env.ALLOWED_HOSTS)
    problems.push(
      'PUBLIC_BASE_URL: required in production, such as https://api.example.com; or set ALLOWED_HOSTS',
    )
  return problems
}
