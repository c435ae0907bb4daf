import pino from 'pino'

export type Log = pino.Logger

// The values of these keys are redacted.
const SECRETS = [
  'password',
  'password_hash',
  'token',
  'access_token',
  'refresh_token',
  'authorization',
  'cookie',
  'secretKey',
  'adminPassword',
  'databaseUrl',
  'databaseUrlUnpooled',
  'databaseReplicaUrl',
  'DATABASE_URL',
  'DATABASE_REPLICA_URL',
  'SECRET_KEY',
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

/** The process's logger: JSON lines on standard output, readable ones on a terminal; secrets print as `***`. */
export async function createLog(level: string, process_: string): Promise<Log> {
  const options: pino.LoggerOptions = {
    level,
    base: { process: process_, pid: process.pid },
    redact: { paths: SECRETS.flatMap((key) => [key, `*.${key}`]), censor: '***' },
    serializers: { err: pino.stdSerializers.err },
    timestamp: pino.stdTimeFunctions.isoTime,
  }
  if (process.stdout.isTTY) {
    const { default: pretty } = await import('pino-pretty')
    return pino(options, pretty({ colorize: true, ignore: 'pid', sync: true }))
  }
  return pino(options, pino.destination({ dest: 1, sync: false, minLength: 0 }))
}
