import type { Outcomes } from '../../sql/comms/sends.ts'
import type { Mailbox } from './mailbox.ts'

/** The tasks' interface to email, text messages and calls. `workers/providers` implements it. */

/** An email to send. */
export interface EmailMessage {
  /** Id of the send, the same in every attempt; the Message-ID derives from it. */
  readonly id: string
  readonly to: readonly Mailbox[]
  readonly cc?: readonly Mailbox[]
  readonly bcc?: readonly Mailbox[]
  readonly replyTo?: Mailbox
  /** Sender; defaults to the configured one. */
  readonly from?: Mailbox
  readonly subject: string
  readonly text?: string
  readonly html?: string
  /** Further headers by name. */
  readonly headers?: Readonly<Record<string, string>>
  /** Addresses of this request, among all; default all. The others already have the message. */
  readonly pending?: readonly string[]
  /** Date of the message in ms since the epoch; default now. */
  readonly dateMs?: number
  readonly attachments?: readonly EmailAttachment[]
}

/** A file attached to an email. */
export interface EmailAttachment {
  readonly filename: string
  readonly mediaType: string
  readonly byteSize: number
  /**
   * Streams the bytes from the start. A chunk is valid until the next is requested. If the stream fails, the email is
   * not sent.
   */
  read(): AsyncIterable<Uint8Array>
}

export interface Comms {
  /** True if the provider delivers an email only once even if it is submitted repeatedly under the same id. */
  readonly isEmailIdempotent: boolean
  /** Sends an email. @throws fail('email.*') if it was certainly not accepted */
  email(message: EmailMessage, request: ProviderRequest): Promise<EmailSubmitResult>
  /**
   * Sends a text message.
   * @throws fail('telephony.*') if it was certainly not accepted; its cause is an OptedOutError if the number's owner
   * has opted out.
   */
  sms(message: SmsMessage, request: ProviderRequest): Promise<SubmitResult>
  /** Starts a call. @throws fail('telephony.*') if it was certainly not accepted */
  call(message: CallMessage, request: ProviderRequest): Promise<SubmitResult>
  /** Finds recently accepted messages that match this one, oldest first. `sinceMs` is in ms since the epoch. */
  findSms(message: SmsMessage, sinceMs: number, signal: AbortSignal): Promise<readonly ProviderMessage[]>
  findCall(message: CallMessage, sinceMs: number, signal: AbortSignal): Promise<readonly ProviderMessage[]>
  /**
   * Times at which to look up a message with an unknown outcome, in ms after the request ended. There are several,
   * because the provider's list may lag behind.
   */
  readonly lookupDelaysMs: readonly number[]
  /**
   * Checks that the provider accepts mail from an address; does nothing if the provider cannot check it.
   * @throws fail('email.sender_unverified')
   */
  checkSender(address: string, signal: AbortSignal): Promise<void>
  readonly domains: Domains
}

/** Abort signal and start hook of a request to a provider. */
export interface ProviderRequest {
  /**
   * Aborts the request. A request that the provider may have received waits briefly for a response, then resolves to
   * `unknown`.
   */
  readonly signal: AbortSignal
  /** True if a person waits for the message: it starts before others where a rate limits them. */
  readonly isUrgent?: boolean
  /** Runs immediately before the provider can receive the message. If it rejects, nothing is sent. */
  begin(): Promise<void>
}

/** Outcome of an email for one recipient. `deferred`: the server may accept it later. */
export interface RecipientOutcome {
  readonly address: string
  readonly status: 'sent' | 'deferred' | 'failed'
  /** Reason of a refusal; null if the server accepted the recipient. */
  readonly detail: string | null
}

/** Outcome of a request that the provider did not reject. */
export type SubmitResult =
  | {
      readonly kind: 'taken'
      /** The provider's id; null if it returns none. */
      readonly providerId: string | null
      readonly status: string
      /** Message for the sender, such as the reason for a partial failure; null if there is none. */
      readonly detail: string | null
      readonly outcomes?: Outcomes
    }
  | {
      readonly kind: 'unknown'
      readonly reason: string
      /**
       * True if the provider responded with a failure. If its list then lacks the message, the provider did not accept
       * it.
       */
      readonly answered: boolean
      /** Seconds for which the provider asks to wait; absent if it does not ask. */
      readonly retryAfter?: number
    }

/** Outcome of an email. `partly`: the server refused it for some recipients, or for all. */
export type EmailSubmitResult =
  | SubmitResult
  | { readonly kind: 'partly'; readonly recipients: readonly RecipientOutcome[] }

/** The telephony provider's error code of a text message to a number whose owner has opted out. */
export const OPTED_OUT_CODE = 21610

/** The cause of a refusal to send a text message whose recipient has opted out. */
export class OptedOutError extends Error {}

export interface SmsMessage {
  /** Id of the send, which status callbacks contain. */
  readonly id: string
  /** Phone number in E.164 form. */
  readonly to: string
  /** Number, short code, alphanumeric sender, or id of a messaging service; default the configured sender. */
  readonly from?: string | undefined
  readonly body: string
}

export interface CallMessage {
  /** Id of the send, which status callbacks contain. */
  readonly id: string
  /** Phone number in E.164 form. */
  readonly to: string
  /** URL from which the provider fetches the call's script (TwiML). */
  readonly scriptUrl: string
  /** Maximum ringing time in seconds; the provider's default is 60. */
  readonly timeout?: number
}

/** A message or call in the format of the provider's list. */
export interface ProviderMessage {
  readonly providerId: string
  readonly status: string
}

/** Sender domains of the account at the email provider. */
export interface Domains {
  /** Lists the domains. @throws fail('domain.not_configured'), fail('domain.refused'), fail('domain.failed') */
  list(signal: AbortSignal): Promise<readonly Domain[]>
  /** Adds a domain, or returns the existing one. Throws the same errors as `list`. */
  add(name: string, region: string | undefined, signal: AbortSignal): Promise<DomainWithRecords>
  /**
   * Makes the provider check the domain's DNS; null if the account has no such domain. Throws the same errors as
   * `list`.
   */
  check(name: string, signal: AbortSignal): Promise<DomainWithRecords | null>
}

export interface Domain {
  readonly id: string
  readonly name: string
  /** The provider's status: `verified`, `pending`, `not_started`, `failed`, … */
  readonly status: string
  readonly region: string | null
  readonly created_at: string | null
}

/** A DNS record that a domain requires. */
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
