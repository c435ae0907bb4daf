import { accountErrors } from './account-errors.ts'
import { aiErrors } from './ai/errors.ts'
import { callerErrors } from './caller-errors.ts'
import { messageErrors } from './message-errors.ts'
import { quotaErrors } from './quota-errors.ts'
import { ragErrors } from './rag/errors.ts'
import { voiceErrors } from './voice-errors.ts'

/**
 * Table of all errors, with the public text of each and whether a retry can help. The edge maps each code to an HTTP
 * status. Routes declare the codes they can return, jobs store `{code, detail}`, and OpenAPI lists both.
 */

interface ErrorRow {
  /** Public text. The failure's data fills its `{name}` placeholders. Never contains exception text. */
  readonly detail: string
  /**
   * Set if jobs that fail with this error are retried. `free`: the failure costs no try, because the job did not get its
   * chance. Examples are an outage, a shortage of the machine, and a provider that the service does not ask.
   */
  readonly retry?: 'later' | 'free'
  /** Public code, if it differs from the error's key in the table. */
  readonly code?: string
}

const errorTable = {
  'request.malformed': { detail: 'The request could not be read: {reason}' },
  'request.invalid': { detail: '{reason}' },
  'request.too_large': { detail: 'The body is larger than the limit of {limit} bytes' },
  'request.media_type': { detail: 'Content-Type must be {expected}' },
  'request.incomplete': { detail: 'The connection closed before the entire body arrived' },
  'request.range': { detail: 'The range lies outside the content' },
  'request.cross_site': { detail: 'A page on another site may not make this request' },
  'request.misdirected': {
    detail: 'This service does not serve that host; set PUBLIC_BASE_URL or ALLOWED_HOSTS',
  },
  'route.missing': { detail: 'No such path' },
  'route.method': { detail: 'Method not allowed; this path accepts {allow}' },
  'auth.required': { detail: 'Not authenticated' },
  'auth.credentials': { detail: 'Incorrect email or password' },
  'auth.inactive': { detail: 'This account is deactivated' },
  'auth.forbidden': { detail: 'This requires the role {roles}' },
  'auth.refresh': { detail: 'The refresh token is missing, expired or revoked' },
  'auth.locked': {
    detail: 'This account is locked after too many failed logins; try again later',
  },
  'auth.not_yours': { detail: 'Only the account owner or an admin may do this' },
  'auth.registration_closed': { detail: 'Registration is closed' },
  'account.email_taken': { detail: 'An account with this email already exists' },
  'account.missing': { detail: 'User not found' },
  'account.no_fields': { detail: 'No fields to update' },
  'account.token': { detail: 'The token is invalid or has expired' },
  'account.last_admin': {
    detail: 'This is the last active admin; make another account an admin first',
  },
  'account.setup_token': {
    detail:
      'The setup link is invalid, or an admin already exists; sign in, or use the link printed at the next start',
  },
  'account.email_same': { detail: 'The account already uses this address' },
  'account.email_change_missing': { detail: 'No email change is pending' },
  'account.deletion_due': { detail: 'The account is being deleted; this can no longer be undone' },
  'account.session_missing': { detail: 'Session not found' },
  'export.missing': { detail: 'Export not found or expired' },
  'org.missing': { detail: 'Organization not found' },
  'org.not_member': { detail: 'Only members of the organization may do this' },
  'org.forbidden': { detail: 'This requires the role {roles} in the organization' },
  'org.rank': {
    detail: 'You cannot grant a role above your own, or change a member who ranks above you',
  },
  'org.last_owner': {
    detail: 'An organization must have an owner; transfer ownership first, or delete the organization',
  },
  'org.owner_stays': {
    detail: 'The owner cannot be removed; ownership must be transferred first',
  },
  'org.slug_invalid': {
    detail:
      'The slug must be 1 to 63 lowercase letters, digits and hyphens, and must not start or end with a hyphen',
  },
  'org.slug_taken': { detail: 'An organization with this slug already exists' },
  'org.no_fields': { detail: 'No fields to update' },
  'org.role': { detail: 'The role must be owner, admin or member' },
  'org.transfer_self': { detail: 'You cannot transfer ownership to yourself' },
  'org.transfer_target': { detail: 'Ownership can only be transferred to a member' },
  'member.missing': { detail: 'Member not found' },
  'member.exists': { detail: 'The user is already a member' },
  'member.unknown_users': { detail: 'Unknown user ids: {ids}' },
  'invite.missing': { detail: 'Invite not found' },
  'invite.pending': { detail: 'An invite for this address is already pending' },
  'invite.token': { detail: 'The invite token is invalid' },
  'invite.email': { detail: 'The invite is for a different email address' },
  'invite.accepted': { detail: 'The invite was already accepted' },
  'invite.revoked': { detail: 'The invite was revoked' },
  'invite.expired': { detail: 'The invite has expired' },
  'stream.limited': { detail: 'Too many event streams are open; close one first' },
  'request.limited': { detail: 'Too many requests; try again in {seconds} s' },
  'idempotency.running': {
    detail: 'The first request with this Idempotency-Key is still running',
  },
  'idempotency.mismatch': {
    detail: 'This Idempotency-Key was already used with a different request',
  },
  'job.missing': { detail: 'Job not found' },
  'job.not_failed': { detail: 'Only a failed job can be retried; this one is {status}' },
  'job.not_runnable': { detail: 'This version of the service cannot retry the job' },
  'job.cancelled': { detail: 'The job was cancelled' },
  'job.superseded': { detail: 'Another worker has taken over this job' },
  'job.timeout': { detail: 'The job exceeded its time limit of {seconds} s', retry: 'later' },
  'job.crashed': { detail: 'The worker thread crashed while running the job', retry: 'later' },
  'schedule.missing': { detail: 'Schedule not found' },
  'task.unknown': { detail: 'This queue has no task named {name}; it has {names}' },
  'task.unknown_queue': { detail: 'There is no queue named {name}; the queues are {names}' },
  'worker.missing': { detail: 'Worker not found' },
  'queue.missing': { detail: 'There is no queue named {name}; the queues are {names}' },
  'task.missing': { detail: 'Task not found, or its result has expired' },
  'task.chosen_failure': { detail: 'The task failed, as requested' },
  'task.chosen_passing_failure': { detail: 'The task failed temporarily, as requested', retry: 'later' },
  'document.missing': { detail: 'Document not found' },
  'document.empty': { detail: 'The file is empty' },
  'document.file_required': { detail: 'The form must include a file in the field "file"' },
  'document.protected': {
    detail: 'The document is protected; clear its "protected" flag first',
  },
  'document.supersedes_self': { detail: 'A document cannot supersede itself' },
  'document.supersedes_missing': { detail: 'The document to supersede does not exist' },
  'document.supersedes_taken': {
    detail: 'The document to supersede is already superseded by another document',
  },
  'document.supersedes_circle': {
    detail: 'The document to supersede already supersedes this one, directly or indirectly',
  },
  'document.stored_again': {
    detail:
      'The same file was uploaded again after this document was deleted; delete the newer document first',
  },
  'document.password_wrong': {
    detail: 'The document is encrypted and the password is wrong',
  },
  'document.tag_missing': { detail: 'The document has no such tag' },
  'document.tags_full': { detail: 'A document can have at most 100 tags' },
  'document.bytes_missing': { detail: 'The document is missing from storage' },
  'document.language_missing': { detail: 'OCR data is missing for these languages; install {packages}' },
  'document.store_failed': {
    detail: 'File storage is unreachable or full; try again shortly',
    retry: 'later',
  },
  'document.page_missing': { detail: 'Page not found' },
  'document.image_missing': { detail: 'The page has no image' },
  'document.image_pending': { detail: 'The image is still being rendered; try again shortly' },
  'payment.not_configured': { detail: 'Payments are not configured. Set PROVIDER_SECRET_KEY.' },
  'payment.webhook_not_configured': {
    detail: 'Payment events are not configured. Set PROVIDER_WEBHOOK_SECRET.',
  },
  'payment.payload': { detail: 'Invalid payload' },
  'payment.rejected': { detail: '{reason}' },
  'payment.declined': { detail: '{reason}' },
  'payment.key': {
    detail: 'The payment provider rejected PROVIDER_SECRET_KEY: {reason}',
  },
  'payment.failed': {
    detail: 'The payment provider could not be reached or failed: {reason}',
    retry: 'later',
  },
  'transaction.missing': { detail: 'Transaction not found' },
  'transaction.not_refundable': {
    detail: 'Only a successful charge can be refunded; this transaction is {status}',
  },
  'transaction.refund_too_large': {
    detail: 'At most {available} of the charge can still be refunded',
  },
  'subscription.missing': { detail: 'Subscription not found' },
  'subscription.canceled': { detail: 'The subscription is already canceled' },
  'dispute.missing': { detail: 'Dispute not found' },
  ...aiErrors,
  'post.missing': { detail: 'Post not found' },
  'post.slug_taken': { detail: 'A post with this slug already exists' },
  'tag.missing': { detail: 'Tag not found' },
  'tag.name_taken': { detail: 'A tag with this name already exists' },
  'tag.slug_taken': { detail: 'A tag with this slug already exists' },
  'import.file_required': { detail: 'The form must include a file in the field "file"' },
  'import.file_type': {
    detail: 'The file name must end with .md, .markdown, .zip or .json',
  },
  'import.encoding': { detail: 'The file is not valid UTF-8' },
  'import.refused': { detail: 'The file cannot be imported: {reason}' },
  'import.too_complex': { detail: 'The file cannot be imported: it {reason}' },
  'import.conflict': {
    detail: 'Nothing was imported: a post with the slug {slug} already exists',
  },
  'import.bytes_missing': { detail: 'The uploaded file is missing from storage' },
  'llm.list_failed': {
    detail: 'The model list could not be fetched: {reason}',
    retry: 'later',
  },
  'llm.list_refused': { detail: 'The model list was rejected: {reason}' },
  'llm.model_missing': { detail: 'Model not found in the catalog' },
  'llm.model_disabled': { detail: 'The model is disabled: its vendor withdrew it' },
  'llm.model_no_chat': { detail: 'The model does not support text chat' },
  'llm.provider_needed': {
    detail: 'Several providers offer this model; specify one of: {providers}',
  },
  ...voiceErrors,
  ...ragErrors,
  ...accountErrors,
  ...callerErrors,
  ...quotaErrors,
  ...messageErrors,
  'database.busy': { detail: 'The service is overloaded; try again shortly', retry: 'later' },
  'database.too_slow': {
    detail: 'The query exceeded its time limit; narrow the request or try again later',
    retry: 'later',
  },
  'database.down': {
    detail: 'The database cannot be reached; try again shortly',
    retry: 'free',
  },
  'provider.paused': { detail: '{provider} is not asked at the moment: {reason}', retry: 'free' },
  'service.short': {
    detail: 'The service is short of memory, processes or file descriptors; try again shortly',
    retry: 'free',
  },
  'service.stopping': { detail: 'The service is restarting; try again shortly', retry: 'free' },
  internal: { detail: 'Internal error (request {requestId})' },
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof errorTable

/** One problem with a request's input, as listed in a 422 body. */
export interface InputProblem {
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly type: string
}

interface FailureOptions {
  readonly cause?: unknown
  readonly problems?: readonly InputProblem[]
  readonly retryAfter?: number
  /** Scope that an API key lacks. */
  readonly scope?: string
}

/** A failure that clients may see. {@link fail} creates it, the edge renders it, and jobs store it. */
export class Failure extends Error {
  readonly code: ErrorCode
  readonly detail: string
  readonly problems: readonly InputProblem[] | undefined
  /** Seconds after which a retry can help; undefined if unknown. */
  readonly retryAfter: number | undefined
  /** Scope that an API key lacks; only set for `auth.scope`. */
  readonly scope: string | undefined

  constructor(code: ErrorCode, detail: string, options?: FailureOptions) {
    super(detail, options?.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'Failure'
    this.code = code
    this.detail = detail
    this.problems = options?.problems
    this.retryAfter = options?.retryAfter
    this.scope = options?.scope
  }

  get retryable(): boolean {
    return 'retry' in errorTable[this.code]
  }
}

/**
 * Creates the failure for a code and fills in its text from `data`. Does not throw it: write `throw
 * fail('document.missing')`.
 */
export function fail(
  code: ErrorCode,
  data: Readonly<Record<string, string | number>> = {},
  options?: FailureOptions,
): Failure {
  const detail = errorTable[code].detail.replace(/\{(\w+)\}/g, (_, name: string) =>
    String(data[name] ?? name),
  )
  return new Failure(code, detail, options)
}

/** True if a job that fails with this code has not had its chance, so that the failure costs no try. */
export function costsNoTry(code: string): boolean {
  const row: ErrorRow | undefined = errorTable[code as ErrorCode]
  return row?.retry === 'free'
}

/** Returns the table row of a code. Its text still contains the placeholders. */
export function getErrorRow(code: ErrorCode): ErrorRow {
  return errorTable[code]
}

/** Returns the `code` for error bodies: the row's own code, or else the error code. */
export function getPublicCode(code: ErrorCode): string {
  return getErrorRow(code).code ?? code
}

/** Restores the failure from a job's stored `{code, detail}`. Codes that this version does not know become `internal`. */
export function restoreFailure(stored: { code: string; detail: string }): Failure {
  return new Failure(stored.code in errorTable ? (stored.code as ErrorCode) : 'internal', stored.detail)
}
