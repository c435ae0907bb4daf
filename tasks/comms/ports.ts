/** Email, text messages and calls as tasks see them. `workers/providers` implements them. */

/** An email to send. */
export interface EmailMessage {
  /** Unique, and the same in every attempt: the Message-ID is made from it. */
  readonly id: string
  readonly to: readonly string[]
  readonly cc?: readonly string[]
  readonly bcc?: readonly string[]
  readonly replyTo?: string
  /** Default: the configured sender. */
  readonly from?: string
  readonly subject: string
  readonly text?: string
  readonly html?: string
  /** When it was written, in ms since the epoch; default now. */
  readonly dateMs?: number
  readonly attachments?: readonly EmailAttachment[]
}

/** A file that goes with an email. */
export interface EmailAttachment {
  readonly filename: string
  readonly mediaType: string
  readonly byteSize: number
  /** Its bytes from the beginning, piece by piece; a piece is valid until the next is requested. What it throws fails the email. */
  read(): AsyncIterable<Uint8Array>
}

export interface Comms {
  /** Whether an email that is handed over again under the same id is still delivered only once. */
  readonly emailRepeatable: boolean
  /** @throws fail('email.*') when the message was certainly not accepted. */
  email(message: EmailMessage, request: Request): Promise<Handed>
  /** @throws fail('telephony.*') when the message was certainly not accepted. */
  sms(message: SmsMessage, request: Request): Promise<Handed>
  /** @throws fail('telephony.*') when the call was certainly not accepted. */
  call(message: CallMessage, request: Request): Promise<Handed>
  /** Matches for this message among those that the provider accepted recently, oldest first. */
  findSms(message: SmsMessage, sinceMs: number, signal: AbortSignal): Promise<readonly Found[]>
  findCall(message: CallMessage, sinceMs: number, signal: AbortSignal): Promise<readonly Found[]>
  /** When to look a message up, in ms after its request ended: the provider's list may show it late. */
  readonly looksMs: readonly number[]
  /**
   * Checks that the provider accepts mail from an address; does nothing when the provider can't be asked.
   * @throws fail('email.sender_unverified')
   */
  checkSender(address: string, signal: AbortSignal): Promise<void>
  readonly domains: Domains
}

/** Control over a request to a provider. */
export interface Request {
  /** Aborts it. A request already under way has a moment left to be answered, and is `unknown` after that. */
  readonly signal: AbortSignal
  /** Called right before the provider could receive the message; when it rejects, nothing is sent. */
  begin(): Promise<void>
}

/** The outcome of a request that was sent and not refused. */
export type Handed =
  | {
      readonly kind: 'taken'
      /** The provider's id for it, if any. */
      readonly providerId: string | null
      readonly status: string
      /** What else the sender should know: a sentence. */
      readonly detail: string | null
    }
  | {
      readonly kind: 'unknown'
      readonly reason: string
      /** The provider did answer, with a failure: a message that it does not have by then, it never will. */
      readonly answered: boolean
    }

export interface SmsMessage {
  /** Ours, which status callbacks name. */
  readonly id: string
  /** In E.164 form. */
  readonly to: string
  readonly body: string
}

export interface CallMessage {
  /** Ours, which status callbacks name. */
  readonly id: string
  /** In E.164 form. */
  readonly to: string
  /** Where the provider gets the script of the call (TwiML). */
  readonly scriptUrl: string
  /** Seconds of ringing; absent: the provider's 60. */
  readonly timeout?: number
}

/** A message or call that the provider has. */
export interface Found {
  readonly providerId: string
  readonly status: string
}

/** The domains that the account may send from. */
export interface Domains {
  /** @throws fail('domain.not_configured'), fail('domain.refused'), fail('domain.failed') */
  list(signal: AbortSignal): Promise<readonly Domain[]>
  /** Adds a domain, or returns the existing one; throws the same. */
  add(name: string, region: string | undefined, signal: AbortSignal): Promise<DomainWithRecords>
  /** Has the provider check the DNS again; null when the account has no such domain; throws the same. */
  check(name: string, signal: AbortSignal): Promise<DomainWithRecords | null>
}

export interface Domain {
  readonly id: string
  readonly name: string
  /** `verified`, `pending`, `not_started`, `failed`, …: the provider's term. */
  readonly status: string
  readonly region: string | null
  readonly created_at: string | null
}

/** A required DNS record. */
export interface DnsRecord {
  readonly purpose: string | null
  readonly type: string
  readonly name: string
  readonly value: string
  readonly ttl: string | null
  readonly priority: number | null
  readonly status: string | null
}

export interface DomainWithRecords extends Domain {
  readonly records: readonly DnsRecord[]
}
