import { existsSync, readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { hostOf, isLoopback } from '../addresses.ts'
import { findNearestName } from '../nearest-name.ts'
import { ENV_FILE } from './environment.ts'
import { SETTING_NAMES, type Settings } from './settings.ts'

/** Warns of valid settings that look like mistakes. Startup logs the warnings, and `npm run doctor` lists them. */

// Matches variables in `.env` for libraries, process startup and compose.yaml.
const OTHER_VARIABLES =
  /^(AWS_\w+|UWS_HTTP_MAX_HEADERS_SIZE|UV_THREADPOOL_SIZE|TZ|DOMAIN|(POSTGRES|POSTGRES_APP|MINIO_ROOT)_PASSWORD)$/

/** Sets the variables in `.env` that the environment does not set. */
export function loadEnvFile(): void {
  if (existsSync(ENV_FILE)) process.loadEnvFile(ENV_FILE)
}

export function findSettingWarnings({
  production,
  publicBaseUrl,
  jobRetention,
  secretKey = '',
}: Settings): string[] {
  const url = new URL(publicBaseUrl)
  const [keepOthers, keepFailed] = jobRetention
  const isPlain = production && url.protocol === 'http:' && !isLoopback(hostOf(url))
  return [
    ...(existsSync(ENV_FILE) ? findUnknownNames(readFileSync(ENV_FILE, 'utf8')) : []),
    ...(isPlain
      ? ['PUBLIC_BASE_URL is http: passwords and session cookies are readable on the network']
      : []),
    ...(production && (secretKey.includes(',') || secretKey !== secretKey.trim())
      ? ['SECRET_KEY has a comma or outer white space: SECRET_KEYS_PREVIOUS, a list, could not keep it']
      : []),
    ...(keepFailed < keepOthers
      ? [
          'WORKER_KEEP_FAILED_SECONDS is less than WORKER_KEEP_RESULT_SECONDS: failed jobs expire before the others',
        ]
      : []),
  ]
}

/**
 * Returns a line for each unknown setting in the text of a `.env`. Ignores the environment, which holds variables of
 * other programs.
 */
export function findUnknownNames(text: string): string[] {
  const unknown = Object.keys(parseEnv(text)).filter(
    (name) => !SETTING_NAMES.includes(name) && !OTHER_VARIABLES.test(name),
  )
  return unknown.map((name) => {
    const nearest = findNearestName(name.toUpperCase(), SETTING_NAMES)
    return `${ENV_FILE}: unknown setting ${name}${nearest === null ? '' : `; did you mean ${nearest}?`}`
  })
}
