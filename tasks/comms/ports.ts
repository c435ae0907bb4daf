/** Email, text messages and calls as tasks see them. `workers/providers` has the real ones. */

/** A mail on its way out. */
export interface EmailMessage {
  /** Unique and the same for every attempt: the Message-ID is made from it. */
  readonly id: string
  readonly to: readonly string[]
  readonly cc?: readonly string[]
  readonly bcc?: readonly string[]
  readonly replyTo?: string
  /** Default: the sender of the settings. */
  readonly from?: string
  readonly subject: string
  readonly text?: string
  readonly html?: string
  /** When it was written, in ms since the epoch; default now. */
  readonly dateMs?: number
}

export interface Comms {
  /** Whether an email that is handed over again, with the same id, is delivered once all the same. */
  readonly emailRepeatable: boolean
  /** @throws fail('email.*') for what was certainly not taken. */
  email(message: EmailMessage, request: Request): Promise<Handed>
  /** @throws fail('telephony.*') for what was certainly not taken. */
  sms(message: SmsMessage, request: Request): Promise<Handed>
  /** @throws fail('telephony.*') for what was certainly not taken. */
  call(message: CallMessage, request: Request): Promise<Handed>
  /** What the provider has of this message among what it took lately, oldest first. */
  findSms(message: SmsMessage, sinceMs: number, signal: AbortSignal): Promise<readonly Found[]>
  findCall(message: CallMessage, sinceMs: number, signal: AbortSignal): Promise<readonly Found[]>
  /** When to look for what a request has left there, in ms after it ended: what was just taken may come late to a list. */
  readonly looksMs: readonly number[]
  /**
   * Checks that the provider takes mail from an address; says nothing when it can't be asked.
   * @throws fail('email.sender_unverified')
   */
  checkSender(address: string, signal: AbortSignal): Promise<void>
  readonly domains: Domains
}

/** How a request may go out. */
export interface Request {
  /** Cuts it short. What is under way by then has a moment left to be answered, and is unknown after that. */
  readonly signal: AbortSignal
  /** Called right before the provider could take the message; when it rejects, nothing was sent. */
  begin(): Promise<void>
}

/** What became of a request that went out and was not refused. */
export type Handed =
  | {
      readonly kind: 'taken'
      /** What the provider calls it, if it does. */
      readonly providerId: string | null
      readonly status: string
      /** What else the sender should know: a sentence. */
      readonly detail: string | null
    }
  | {
      readonly kind: 'unknown'
      readonly reason: string
      /** The provider did answer, that it had failed: what it does not have after that, it never will. */
      readonly answered: boolean
    }

export interface SmsMessage {
  /** In E.164 form. */
  readonly to: string
  readonly body: string
}

export interface CallMessage {
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
  /** Adds a domain, or answers the one that is there; the same throws. */
  add(name: string, region: string | undefined, signal: AbortSignal): Promise<DomainWithRecords>
  /** Has the provider look at the DNS again; null when the account has no such domain; the same throws. */
  check(name: string, signal: AbortSignal): Promise<DomainWithRecords | null>
}

export interface Domain {
  readonly id: string
  readonly name: string
  /** `verified`, `pending`, `not_started`, `failed`, …: the provider's word. */
  readonly status: string
  readonly region: string | null
  readonly created_at: string | null
}

/** A record that the DNS must have. */
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
