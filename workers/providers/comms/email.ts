import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { SendMailOptions, Transporter } from 'nodemailer'
import { fail } from '../../../sql/errors.ts'
import { SEND_ID_HEADER } from '../../../tasks/comms/callback.ts'
import { addressOf, type Mailbox } from '../../../tasks/comms/mailbox.ts'
import type {
  EmailAttachment,
  EmailMessage,
  EmailSubmitResult,
  ProviderRequest,
  RecipientOutcome,
} from '../../../tasks/comms/ports.ts'
import { hostOf, isAllowedHost, isLoopback } from '../../../tasks/platform/addresses.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { type Breaker, createBreaker } from '../breaker.ts'
import { recordCall } from '../call.ts'
import { chooseWait, type StartLimit } from '../start-limit.ts'
import { throwIfShort, waitFor } from '../wait.ts'

/** Sends mail through the configured SMTP server, or writes it as .eml files to the outbox. */
export interface Mailer {
  /**
   * Sends a message. The result is `unknown` if the server may have accepted it without answering.
   * @throws if the server certainly did not accept it.
   */
  send(message: EmailMessage, request: ProviderRequest): Promise<EmailSubmitResult>
  /** True if a resent message is still delivered only once. */
  readonly isIdempotent: boolean
}

const require = createRequire(import.meta.url)
// Loaded on demand: most threads send no mail.
const loadNodemailer = () => require('nodemailer') as typeof import('nodemailer')

// Below the timeouts of the sending tasks, so that the error names the silent server. The largest attachments take 346 s
// at 2 Mbit/s.
const LIMITS = { connectMs: 10_000, silentMs: 20_000, totalMs: 90_000, maxWaitMs: 10_000 }
const MIN_BYTES_PER_MS = 262

/** Creates a mailer; the first message opens the connection. The outbox has no rate. */
export function createMailer(
  settings: Pick<Settings, 'email' | 'dataDir'>,
  limits: Partial<typeof LIMITS> = {},
  starts: StartLimit | null = null,
): Mailer {
  const { smtpUrl, from } = settings.email
  if (smtpUrl === null || from === '')
    return { isIdempotent: false, send: () => Promise.reject(fail('email.not_configured')) }
  // Resend stores idempotency keys for 24 hours: https://resend.com/docs/dashboard/emails/idempotency-keys
  const resend = smtpUrl !== 'outbox:' && /(^|\.)resend\.com$/.test(new URL(smtpUrl).hostname)
  const compose = createComposer(from, resend)
  if (smtpUrl === 'outbox:')
    return { isIdempotent: true, send: createOutboxSender(join(settings.dataDir, 'outbox'), compose) }
  return { isIdempotent: resend, send: createSmtpSender(smtpUrl, compose, { ...LIMITS, ...limits }, starts) }
}

type SendMessage = Mailer['send']
type Compose = (message: EmailMessage) => SendMailOptions & { readonly attachments: readonly Attachment[] }
type Attachment = ReturnType<typeof toAttachment>

/** Composes a message deterministically: every attempt yields the same bytes. */
function createComposer(sender: Mailbox, resend: boolean): Compose {
  return ({
    id,
    to,
    cc = [],
    bcc = [],
    replyTo,
    from = sender,
    pending,
    subject,
    text,
    html,
    headers = {},
    dateMs,
    attachments = [],
  }) => ({
    from: copyMailbox(from),
    to: to.map(copyMailbox),
    cc: cc.map(copyMailbox),
    bcc: bcc.map(copyMailbox),
    ...(pending === undefined ? {} : { envelope: { from: addressOf(from), to: [...pending] } }),
    subject,
    ...(replyTo === undefined ? {} : { replyTo: copyMailbox(replyTo) }),
    ...(text === undefined ? {} : { text }),
    ...(html === undefined ? {} : { html }),
    ...(dateMs === undefined ? {} : { date: new Date(dateMs) }),
    attachments: attachments.map(toAttachment),
    // Lets servers and mail clients recognize a duplicate.
    messageId: `<${id}@${addressOf(from).replace(/^.*@/, '')}>`,
    baseBoundary: id,
    headers: {
      ...headers,
      'auto-submitted': 'auto-generated',
      [SEND_ID_HEADER]: id,
      ...(resend ? { 'resend-idempotency-key': [id, ...(pending ?? [])].join(' ') } : {}),
    },
    // Never let nodemailer read a file or URL that a body or an address names.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}

/** Copies a mailbox, because nodemailer changes the objects that it receives. */
const copyMailbox = (mailbox: Mailbox) => (typeof mailbox === 'string' ? mailbox : { ...mailbox })

/**
 * Streams an attachment as the server reads it. An attached mail is sent as a plain file: a `message/*` part must not be
 * base64-encoded (RFC 2046, section 5.2.1).
 */
function toAttachment({ filename, mediaType, read }: EmailAttachment) {
  const type = mediaType.startsWith('message/') ? 'application/octet-stream' : mediaType
  return {
    filename,
    contentType: type.startsWith('text/') ? `${type}; charset=utf-8` : type,
    contentDisposition: 'attachment' as const,
    contentTransferEncoding: 'base64' as const,
    content: Readable.from(copyPieces(read()), { objectMode: false }),
  }
}

/** Copies each piece: streams read ahead, and a piece is valid only until the next read. */
async function* copyPieces(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  for await (const piece of pieces) yield Buffer.from(piece)
}

/** Closes streams that are still open, for example after a server rejected the message. */
function closeStreams(attachments: readonly Attachment[]): void {
  for (const { content } of attachments) content.destroy()
}

/** Holds back the end of a message. Until the end is sent, the server cannot have accepted the message. */
interface MessageGate {
  readonly request: ProviderRequest
  /** True once the end is being sent: from then on the server may accept the message. */
  isPassed: boolean
  /** True once the sender has stopped waiting: the end must no longer be sent. */
  isShut: boolean
  /** Promise of `request.begin()`, which records the request; null before that call. */
  recording: Promise<void> | null
  /** The error that stopped the message; undefined if none did. */
  refusal: unknown
}

/**
 * True if the server must offer STARTTLS: a man in the middle could remove the offer and read the credentials. Private
 * networks are exempt, and the `requireTLS` parameter of the URL takes precedence.
 */
export function requiresTls(smtpUrl: string): boolean {
  const url = new URL(smtpUrl)
  const isPrivate = isLoopback(hostOf(url)) || !isAllowedHost(hostOf(url), [])
  return url.protocol === 'smtp:' && url.username !== '' && !isPrivate && !url.searchParams.has('requireTLS')
}

/** Creates the connection pool. If a message has a gate, the gate holds back its end. */
function createTransport(url: string, limits: typeof LIMITS): Transporter {
  const transport = loadNodemailer().createTransport({
    url,
    ...(requiresTls(url) ? { requireTLS: true } : {}),
    pool: true,
    maxConnections: 4,
    // A message whose connection broke may have arrived: the job decides about a retry.
    maxRequeues: 0,
    connectionTimeout: limits.connectMs,
    greetingTimeout: limits.connectMs,
    socketTimeout: limits.silentMs,
  } as never)
  // A broken idle connection is not a failure.
  transport.on('error', () => {})
  transport.use('stream', (mail, done) => {
    const { gate } = mail.data as { gate?: MessageGate }
    if (gate !== undefined) mail.message.processFunc((content) => guardEnd(content as Readable, gate))
    done()
  })
  return transport
}

function createSmtpSender(
  url: string,
  compose: Compose,
  limits: typeof LIMITS,
  starts: StartLimit | null,
): SendMessage {
  let transport: Transporter | null = null
  const breaker = createBreaker('The mail server', limits)
  return async (message, request) => {
    request.signal.throwIfAborted()
    await breaker.enter(request.signal)
    await starts?.enter(chooseWait(request), request.signal)
    const gate: MessageGate = { request, isPassed: false, isShut: false, recording: null, refusal: undefined }
    const composed = compose(message)
    transport ??= createTransport(url, limits)
    const sent = recordCall({ provider: 'smtp', operation: 'send', url }, () =>
      sendMail(transport!, { ...composed, gate } as SendMailOptions),
    )
    const totalMs = limits.totalMs + sumAttachmentBytes(message) / MIN_BYTES_PER_MS
    const waited = await waitFor(sent, totalMs, request.signal, () => gate.isPassed)
    closeStreams(composed.attachments)
    if (waited.kind === 'answer') {
      breaker.recordSuccess()
      const { rejectedErrors = [] } = waited.value
      return rejectedErrors.length === 0
        ? { kind: 'taken', providerId: null, status: 'sent', detail: null }
        : { kind: 'partly', recipients: judgeRecipients(message, rejectedErrors, null) }
    }
    gate.isShut = true
    // The recording must end first, so that the reported outcome is final.
    await gate.recording?.catch(() => {})
    if (waited.kind === 'error') return judgeError(waited.error, message, gate, breaker)
    breaker.recordFailure()
    if (gate.isPassed)
      return { kind: 'unknown', reason: 'the server did not answer in time', answered: false }
    request.signal.throwIfAborted()
    throw fail('email.failed', { reason: 'no answer in time' })
  }
}

/** Connects to a mail server, signs in and disconnects. @throws the error of the network or the server. */
export async function verifyServer(url: string): Promise<void> {
  const transport = createTransport(url, LIMITS)
  try {
    await transport.verify()
  } finally {
    transport.close()
  }
}

const sumAttachmentBytes = ({ attachments = [] }: EmailMessage): number =>
  attachments.reduce((sum, { byteSize }) => sum + byteSize, 0)

/** The server's refusal of a recipient. */
interface RejectedError {
  readonly recipient?: string
  readonly responseCode?: number
}

interface SendResult {
  readonly rejectedErrors?: readonly RejectedError[]
}

async function sendMail(transport: Transporter, mail: SendMailOptions): Promise<SendResult> {
  return (await transport.sendMail(mail)) as SendResult
}

/**
 * Passes a message on, but holds back its end until `begin` has resolved. An SMTP server accepts a message with its
 * last line (RFC 5321, section 4.1.1.4). Before the server asks for the content, nodemailer reads nothing.
 */
function guardEnd(content: Readable, gate: MessageGate): Readable {
  const lines = async function* (): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of content) yield chunk as Buffer
      gate.request.signal.throwIfAborted()
      if (gate.isShut) throw new Error('The sender has stopped waiting')
      gate.recording = gate.request.begin()
      await gate.recording
      if (gate.isShut) throw new Error('The sender has stopped waiting')
      gate.isPassed = true
    } catch (error) {
      if (!gate.isShut) gate.refusal = error
      throw new Error('The message was not sent')
    }
  }
  return Readable.from(lines(), { objectMode: false })
}

const listRecipients = ({ pending, to, cc = [], bcc = [] }: EmailMessage): readonly string[] =>
  pending ?? [...new Set([...to, ...cc, ...bcc].map(addressOf))]

/**
 * Returns the outcome for each recipient. `status` is the SMTP status of the message for those that the server did not
 * refuse by themselves; null if it accepted the message.
 */
function judgeRecipients(
  message: EmailMessage,
  rejected: readonly RejectedError[],
  status: number | null,
): RecipientOutcome[] {
  const statuses = new Map(
    rejected.map(({ recipient = '', responseCode = 450 }) => [recipient.toLowerCase(), responseCode]),
  )
  return listRecipients(message).map((address) => {
    const code = statuses.get(address.toLowerCase()) ?? status
    if (code === null) return { address, status: 'sent', detail: null }
    return { address, status: code < 500 ? 'deferred' : 'failed', detail: `SMTP status ${code}` }
  })
}

/** Interprets an SMTP error. @throws if the server certainly did not accept the message. */
function judgeError(
  error: unknown,
  message: EmailMessage,
  gate: MessageGate,
  breaker: Breaker,
): EmailSubmitResult {
  if (gate.refusal !== undefined) throw gate.refusal
  if (!gate.isPassed) {
    gate.request.signal.throwIfAborted()
    throwIfShort(error)
  }
  const {
    code,
    responseCode,
    rejectedErrors = [],
  } = error as SendResult & { code?: string; responseCode?: number }
  // Only a 4xx or 5xx reply proves that the server did not accept the message (RFC 5321, section 4.2.1).
  const refused = responseCode !== undefined && responseCode >= 400
  if (refused && responseCode !== 421) breaker.recordSuccess()
  else breaker.recordFailure()
  if (gate.isPassed && !refused)
    return { kind: 'unknown', reason: `the connection broke (${code ?? 'no answer'})`, answered: false }
  // The reason contains only the code: the server's text can contain addresses and account names.
  if (code === 'EAUTH' && (responseCode === undefined || responseCode >= 500))
    throw fail('email.refused', { reason: 'it does not accept the credentials' }, { cause: error })
  if (code === 'ETLS' && refused && responseCode >= 500)
    throw fail('email.refused', { reason: 'it does not offer STARTTLS' }, { cause: error })
  if (rejectedErrors.length > 0 && listRecipients(message).length > 1)
    return { kind: 'partly', recipients: judgeRecipients(message, rejectedErrors, responseCode ?? 450) }
  const reason = responseCode === undefined ? (code ?? 'no answer') : `SMTP status ${responseCode}`
  throw fail(refused && responseCode >= 500 ? 'email.refused' : 'email.failed', { reason }, { cause: error })
}

/** Writes one file per message, atomically; a resent message replaces its file. */
function createOutboxSender(folder: string, compose: Compose): SendMessage {
  return async (message, { begin }) => {
    const transport = loadNodemailer().createTransport({ streamTransport: true, newline: 'unix' })
    const composed = compose(message)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const file = join(folder, `${message.id.replace(/[^\w-]/g, '_')}.eml`)
    const temporaryFile = `${file}.${randomUUID()}.part`
    try {
      const { message: content } = await transport.sendMail(composed as SendMailOptions)
      await pipeline(content as Readable, createWriteStream(temporaryFile, { mode: 0o600 }))
      await begin()
      await rename(temporaryFile, file)
    } finally {
      closeStreams(composed.attachments)
      await rm(temporaryFile, { force: true })
    }
    return { kind: 'taken', providerId: null, status: 'sent', detail: null }
  }
}
