import pino from 'pino'

export type Log = pino.Logger

/** Level names by the numbers in log lines. */
export const LEVEL_NAMES: Readonly<Record<number, string>> = pino.levels.labels

// Keys whose values are redacted.
const REDACTED_KEYS = [
  'password',
  'password_hash',
  'token',
  'access_token',
  'refresh_token',
  'authorization',
  'cookie',
  'secretKey',
  'secretKeysPrevious',
  'keys.material',
  'adminPassword',
  'databaseUrl',
  'databaseUrlUnpooled',
  'databaseReplicaUrl',
  'DATABASE_URL',
  'DATABASE_REPLICA_URL',
  'SECRET_KEY',
  'SECRET_KEYS_PREVIOUS',
  'smtpUrl',
  '*.email.smtpUrl',
  'apiKey',
  '*.email.apiKey',
  '*.metrics.token',
  'authToken',
  '*.telephony.authToken',
  'credentials',
  'blobs.s3.credentials',
  'tracing.headers',
  'webhookSecrets',
  '*.payments.secretKey',
  '*.payments.webhookSecrets',
  'PROVIDER_SECRET_KEY',
  'PROVIDER_WEBHOOK_SECRET',
]

/**
 * Creates the process's logger. Writes JSON lines to standard output, or a readable format if that is a terminal.
 * Redacts secrets as `***`. `onLine` also receives each line.
 */
export async function createLog(
  level: string,
  processName: string,
  onLine?: (line: string) => void,
): Promise<Log> {
  const options: pino.LoggerOptions = {
    level,
    base: { process: processName, pid: process.pid },
    redact: { paths: REDACTED_KEYS.flatMap((key) => [key, `*.${key}`]), censor: '***' },
    serializers: { err: pino.stdSerializers.err },
    timestamp: pino.stdTimeFunctions.isoTime,
  }
  const out = await openOutput()
  if (onLine === undefined) return pino(options, out)
  // Let the streams accept every line, because `level` has already filtered them.
  return pino(
    options,
    pino.multistream([out, { write: onLine }].map((stream) => ({ level: 'trace', stream }))),
  )
}

async function openOutput(): Promise<pino.DestinationStream> {
  if (!process.stdout.isTTY) return pino.destination({ dest: 1, sync: false, minLength: 0 })
  const { default: pretty } = await import('pino-pretty')
  return pretty({ colorize: true, ignore: 'pid', sync: true })
}
