import { randomUUID } from 'node:crypto'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import nodemailer, { type SendMailOptions, type Transporter } from 'nodemailer'
import { fail } from '../../sql/errors.ts'
import type { EmailMessage } from '../../tasks/context.ts'
import type { Settings } from '../../tasks/settings.ts'

/** Sends mail through the SMTP server of the settings, or keeps it as .eml files for those who have none. */
export interface Mailer {
  /** @throws fail('email.not_configured'), fail('email.refused') for good, fail('email.failed') for now. */
  send(message: EmailMessage, signal: AbortSignal): Promise<void>
}

// Below the time limits of the tasks that send, so that a silent server is named as the reason.
const LIMITS = { connectMs: 10_000, silentMs: 20_000 }

/** Makes a mailer; it connects at its first message. */
export function createMailer(settings: Pick<Settings, 'email' | 'dataDir'>, limits = LIMITS): Mailer {
  const { smtpUrl, from } = settings.email
  if (smtpUrl === null || from === '') return { send: () => Promise.reject(fail('email.not_configured')) }
  const compose = (message: EmailMessage): SendMailOptions => ({
    from,
    to: [...message.to],
    subject: message.subject,
    ...(message.text === undefined ? {} : { text: message.text }),
    ...(message.html === undefined ? {} : { html: message.html }),
    // The same for every attempt: a server or a reader that sees a message twice can tell.
    messageId: `<${message.id}@${from.slice(from.lastIndexOf('@') + 1)}>`,
    headers: { 'auto-submitted': 'auto-generated' },
    // A text or address that names a file or a URL must never make us read it.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  if (smtpUrl === 'outbox:') return outbox(join(settings.dataDir, 'outbox'), compose)
  const transport = nodemailer.createTransport({
    url: smtpUrl,
    pool: true,
    maxConnections: 4,
    // A message whose connection broke may have arrived: whether it goes out again is for the job to say.
    maxRequeues: 0,
    connectionTimeout: limits.connectMs,
    greetingTimeout: limits.connectMs,
    socketTimeout: limits.silentMs,
  } as never)
  return { send: (message, signal) => deliver(transport, compose(message), signal) }
}

async function deliver(transport: Transporter, mail: SendMailOptions, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  const gone = new AbortController()
  // A transfer can't be called back, but nobody has to wait for its end.
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { signal: gone.signal })
  })
  try {
    await Promise.race([transport.sendMail(mail), aborted])
  } catch (error) {
    throw signal.aborted ? error : failureOf(error)
  } finally {
    gone.abort()
  }
}

/** What an SMTP error means: a reply of 5xx is for good (RFC 5321, section 4.2.1), anything else may pass. */
function failureOf(error: unknown): unknown {
  const { code, responseCode } = error as { code?: string; responseCode?: number }
  // The server's own words can hold addresses and account names; its code says what is wrong.
  if (code === 'EAUTH' && (responseCode === undefined || responseCode >= 500))
    return fail('email.refused', { reason: 'it does not accept the credentials' }, { cause: error })
  if (responseCode !== undefined && responseCode >= 500)
    return fail('email.refused', { reason: `SMTP status ${responseCode}` }, { cause: error })
  const reason = responseCode === undefined ? (code ?? 'no answer') : `SMTP status ${responseCode}`
  return fail('email.failed', { reason }, { cause: error })
}

/** One file per message, whole or not there; sending the same message again leaves one. */
function outbox(folder: string, compose: (message: EmailMessage) => SendMailOptions): Mailer {
  const transport = nodemailer.createTransport({ streamTransport: true, buffer: true, newline: 'unix' })
  return {
    send: async (message) => {
      const { message: bytes } = await transport.sendMail(compose(message))
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const file = join(folder, `${message.id.replace(/[^\w-]/g, '_')}.eml`)
      const part = `${file}.${randomUUID()}.part`
      try {
        await writeFile(part, bytes as Buffer, { mode: 0o600 })
        await rename(part, file)
      } finally {
        await rm(part, { force: true })
      }
    },
  }
}
