import { ragErrors } from './rag/errors.ts'

/**
 * The one table of errors: what a client is told, with which status, and whether trying again can help.
 * Routes name the codes they can answer with, jobs store `{code, detail}`, OpenAPI lists both.
 */

interface ErrorRow {
  /** HTTP status of the answer. */
  readonly status: number
  /** Public text; `{name}` is replaced from the failure's data. Never holds exception text. */
  readonly detail: string
  /** Whether a job that failed with it is tried again. */
  readonly retry?: 'later'
}

const table = {
  'request.malformed': { status: 400, detail: 'The request could not be read: {reason}' },
  'request.invalid': { status: 422, detail: '{reason}' },
  'request.too_large': { status: 413, detail: 'The body is larger than the limit of {limit} bytes' },
  'request.media_type': { status: 415, detail: 'Content-Type must be {expected}' },
  'request.incomplete': { status: 400, detail: 'The connection closed before the whole body had arrived' },
  'request.cross_site': { status: 403, detail: 'A page of another site may not have this done' },
  'route.missing': { status: 404, detail: 'No such path' },
  'route.method': { status: 405, detail: 'This path answers only to {allow}' },
  'auth.required': { status: 401, detail: 'Not authenticated' },
  'auth.credentials': { status: 401, detail: 'Incorrect email or password' },
  'auth.inactive': { status: 403, detail: 'This account is deactivated' },
  'auth.forbidden': { status: 403, detail: 'This needs the role {roles}' },
  'auth.refresh': { status: 401, detail: 'The refresh token is missing, expired or revoked' },
  'auth.locked': {
    status: 403,
    detail: 'This account is locked after too many failed logins; try again later',
  },
  'auth.not_yours': { status: 403, detail: 'This is for the account itself or an admin' },
  'auth.registration_closed': { status: 403, detail: 'Registration is closed' },
  'account.email_taken': { status: 400, detail: 'An account with this email already exists' },
  'account.missing': { status: 404, detail: 'User not found' },
  'account.no_fields': { status: 400, detail: 'Nothing to change was given' },
  'account.token': { status: 400, detail: 'The token is invalid or has expired' },
  'account.password_wrong': { status: 400, detail: 'The current password is not correct' },
  'account.last_admin': {
    status: 409,
    detail: 'This is the last active admin; make another account admin first',
  },
  'account.session_missing': { status: 404, detail: 'Session not found' },
  'org.missing': { status: 404, detail: 'Organization not found' },
  'org.not_member': { status: 403, detail: 'This is for members of the organization' },
  'org.forbidden': { status: 403, detail: 'This needs the role {roles} in the organization' },
  'org.rank': {
    status: 403,
    detail: 'Nobody may grant a role above the own one, or change somebody who is ranked above',
  },
  'org.last_owner': {
    status: 403,
    detail: 'An organization keeps an owner; transfer the ownership first, or delete the organization',
  },
  'org.owner_stays': {
    status: 403,
    detail: 'The owner cannot be removed; ownership must be transferred first',
  },
  'org.slug_invalid': {
    status: 400,
    detail:
      'The slug must be 1 to 63 lowercase letters, digits and hyphens, and must not start or end with a hyphen',
  },
  'org.slug_taken': { status: 400, detail: 'An organization with this slug already exists' },
  'org.no_fields': { status: 400, detail: 'Nothing to change was given' },
  'org.role': { status: 400, detail: 'The role must be owner, admin or member' },
  'org.transfer_self': { status: 400, detail: 'The ownership cannot be transferred to oneself' },
  'org.transfer_target': { status: 400, detail: 'The ownership can be transferred to a member only' },
  'member.missing': { status: 404, detail: 'Member not found' },
  'member.exists': { status: 400, detail: 'The user is already a member' },
  'member.unknown_users': { status: 400, detail: 'No users have these ids: {ids}' },
  'invite.missing': { status: 404, detail: 'Invite not found' },
  'invite.pending': { status: 400, detail: 'An invite of this address is already pending' },
  'invite.token': { status: 400, detail: 'The invite token is invalid' },
  'invite.email': { status: 400, detail: 'The invite is for another address than that of the account' },
  'invite.accepted': { status: 400, detail: 'The invite was already accepted' },
  'invite.revoked': { status: 400, detail: 'The invite was revoked' },
  'invite.expired': { status: 400, detail: 'The invite has expired' },
  'stream.limited': { status: 429, detail: 'Too many event streams are open; close one first' },
  'request.limited': { status: 429, detail: 'Too many requests; try again in {seconds} s' },
  'email.not_configured': {
    status: 503,
    detail:
      'Email is not configured. Set EMAIL_PROVIDER_API_KEY or EMAIL_SMTP_URL, and EMAIL_PROVIDER_FROM_EMAIL.',
  },
  'email.refused': { status: 502, detail: 'The email provider refused the message: {reason}' },
  'email.failed': {
    status: 502,
    detail: 'The email provider could not be reached or failed: {reason}',
    retry: 'later',
  },
  'email.sender_unverified': {
    status: 400,
    detail: 'The email provider does not send for {domain}: it is no verified domain of the account',
  },
  'domain.not_configured': {
    status: 503,
    detail: 'The REST API of the email provider is not configured. Set EMAIL_PROVIDER_API_KEY.',
  },
  'domain.refused': { status: 502, detail: 'The email provider refused the request: {reason}' },
  'domain.failed': {
    status: 502,
    detail: 'The REST API of the email provider could not be reached or failed: {reason}',
    retry: 'later',
  },
  'domain.missing': { status: 404, detail: 'The account of the email provider has no such domain' },
  'telephony.not_configured': {
    status: 503,
    detail:
      'Telephony is not configured. Set TELEPHONY_ACCOUNT_SID, TELEPHONY_AUTH_TOKEN and TELEPHONY_PHONE_NUMBER.',
  },
  'telephony.refused': { status: 502, detail: 'The telephony provider refused the request: {reason}' },
  'telephony.failed': {
    status: 502,
    detail: 'The telephony provider could not be reached or failed: {reason}',
    retry: 'later',
  },
  'send.missing': { status: 404, detail: 'Message not found' },
  'idempotency.running': {
    status: 409,
    detail: 'The first request with this Idempotency-Key is still running',
  },
  'idempotency.mismatch': {
    status: 422,
    detail: 'This Idempotency-Key was already used with a different request',
  },
  'job.missing': { status: 404, detail: 'Job not found' },
  'job.not_failed': { status: 409, detail: 'Only a failed job can be retried; this one is {status}' },
  'job.not_runnable': { status: 409, detail: 'This version of the service cannot run the job again' },
  'job.cancelled': { status: 409, detail: 'The job was cancelled' },
  'job.superseded': { status: 409, detail: 'Another worker has taken this job over' },
  'job.timeout': { status: 504, detail: 'The job ran longer than its limit of {seconds} s', retry: 'later' },
  'job.crashed': { status: 500, detail: 'The thread that ran the job died', retry: 'later' },
  'task.unknown': { status: 400, detail: 'No task is named {name} on this queue; there are {names}' },
  'task.unknown_queue': { status: 400, detail: 'No queue is named {name}; there are {names}' },
  'task.missing': { status: 404, detail: 'No such task, or its result has expired' },
  'task.chosen_failure': { status: 500, detail: 'The task failed, as it was asked to' },
  'task.chosen_passing_failure': { status: 500, detail: 'The task failed for now, as asked', retry: 'later' },
  'document.missing': { status: 404, detail: 'Document not found' },
  'document.empty': { status: 400, detail: 'The file is empty' },
  'document.file_required': { status: 422, detail: 'The form needs a field "file" that holds a file' },
  'document.protected': {
    status: 409,
    detail: 'The document is protected; clear its flag "protected" first',
  },
  'document.supersedes_self': { status: 400, detail: 'A document cannot supersede itself' },
  'document.supersedes_missing': { status: 400, detail: 'The document to supersede does not exist' },
  'document.supersedes_taken': {
    status: 400,
    detail: 'The document to supersede is superseded by another one already',
  },
  'document.supersedes_circle': {
    status: 400,
    detail: 'The document to supersede supersedes this one, at once or by others',
  },
  'document.tag_missing': { status: 404, detail: 'The document has no such tag' },
  'document.tags_full': { status: 400, detail: 'A document has at most 100 tags' },
  'document.bytes_missing': { status: 502, detail: 'The stored bytes of the document are gone' },
  'document.store_failed': {
    status: 503,
    detail: 'The store of uploaded files cannot be reached or is full; try again shortly',
    retry: 'later',
  },
  'document.page_missing': { status: 404, detail: 'Page not found' },
  'document.image_missing': { status: 404, detail: 'The page has no image' },
  'document.image_pending': { status: 503, detail: 'The image is still being drawn; try again shortly' },
  'payment.not_configured': { status: 503, detail: 'Payments are not configured. Set PROVIDER_SECRET_KEY.' },
  'payment.webhook_not_configured': {
    status: 503,
    detail: 'Events of payments are not configured. Set PROVIDER_WEBHOOK_SECRET.',
  },
  'payment.payload': { status: 400, detail: 'Invalid payload' },
  'payment.rejected': { status: 400, detail: '{reason}' },
  'payment.declined': { status: 400, detail: '{reason}' },
  'payment.key': {
    status: 401,
    detail: 'The payment provider does not accept PROVIDER_SECRET_KEY: {reason}',
  },
  'payment.failed': {
    status: 502,
    detail: 'The payment provider could not be reached or failed: {reason}',
    retry: 'later',
  },
  'transaction.missing': { status: 404, detail: 'Transaction not found' },
  'transaction.not_refundable': {
    status: 400,
    detail: 'Only a charge that has succeeded can be refunded; this transaction is {status}',
  },
  'transaction.refund_too_large': {
    status: 400,
    detail: 'At most {available} of the charge can still be refunded',
  },
  'subscription.missing': { status: 404, detail: 'Subscription not found' },
  'subscription.canceled': { status: 400, detail: 'The subscription is canceled already' },
  'dispute.missing': { status: 404, detail: 'Dispute not found' },
  'ai.disabled': { status: 503, detail: 'AI service error: it is disabled. Set AI_ENABLED to true.' },
  'ai.missing_key': {
    status: 503,
    detail: 'AI service error: Missing API key for {provider} provider. Set {setting} environment variable.',
  },
  'ai.refused': { status: 502, detail: 'AI provider error: {reason}' },
  'ai.failed': { status: 502, detail: 'AI provider error: {reason}', retry: 'later' },
  'ai.interrupted': { status: 502, detail: 'AI provider error: the answer broke off: {reason}' },
  'ai.not_yours': { status: 403, detail: 'Only admins may name another user_id than their own' },
  'agent.missing': { status: 404, detail: 'Agent not found' },
  'agent.inactive': { status: 400, detail: 'The agent is not active' },
  'agent.none': { status: 503, detail: 'AI service error: the agent {slug} is not active' },
  'agent.no_fields': { status: 400, detail: 'Nothing to change was given' },
  'conversation.missing': { status: 404, detail: 'Conversation not found' },
  'conversation.unknown': { status: 400, detail: 'Invalid conversation_id: there is no such conversation' },
  'conversation.denied': { status: 403, detail: 'Access denied: the conversation is of another user' },
  'conversation.gone': { status: 404, detail: 'The conversation was deleted while its turn waited' },
  'turn.missing': { status: 404, detail: 'Message not found' },
  'turn.stopped': { status: 409, detail: 'The answer was stopped' },
  'post.missing': { status: 404, detail: 'Post not found' },
  'post.slug_taken': { status: 409, detail: 'A post with this slug already exists' },
  'tag.missing': { status: 404, detail: 'Tag not found' },
  'tag.name_taken': { status: 409, detail: 'A tag with this name already exists' },
  'tag.slug_taken': { status: 409, detail: 'A tag with this slug already exists' },
  'import.file_required': { status: 422, detail: 'The form needs a field "file" that holds a file' },
  'import.file_type': {
    status: 400,
    detail: 'The file name must end with .md, .markdown, .zip or .json',
  },
  'import.encoding': { status: 400, detail: 'The file is not valid UTF-8' },
  'import.refused': { status: 400, detail: 'The file cannot be imported: {reason}' },
  'import.too_complex': { status: 400, detail: 'The file cannot be imported: it {reason}' },
  'import.conflict': {
    status: 409,
    detail: 'Nothing was imported: a post with the slug {slug} already exists',
  },
  'import.bytes_missing': { status: 502, detail: 'The stored bytes of the file are gone' },
  'llm.list_failed': {
    status: 502,
    detail: 'The list of models could not be read: {reason}',
    retry: 'later',
  },
  'llm.list_refused': { status: 502, detail: 'The list of models was refused: {reason}' },
  'llm.model_missing': { status: 404, detail: 'The catalog has no such model' },
  'llm.model_disabled': { status: 400, detail: 'The model is disabled: its vendor has withdrawn it' },
  'llm.model_no_chat': { status: 400, detail: 'The model does not answer text with text' },
  'llm.provider_needed': {
    status: 400,
    detail: 'Several providers have this model; name one of them: {providers}',
  },
  'voice.provider_missing': { status: 404, detail: 'There is no such provider of voice' },
  'voice.voice_missing': { status: 404, detail: 'Voice not found' },
  'voice.unknown': { status: 400, detail: '{field} cannot be {id}; it may be one of {known}' },
  'voice.preview_missing': { status: 500, detail: 'The preview was removed while it was spoken or read' },
  ...ragErrors,
  'database.busy': { status: 503, detail: 'The service is overloaded; try again shortly', retry: 'later' },
  'database.down': {
    status: 503,
    detail: 'The database cannot be reached; try again shortly',
    retry: 'later',
  },
  'service.stopping': { status: 503, detail: 'The service is restarting; try again shortly', retry: 'later' },
  internal: { status: 500, detail: 'Internal error (request {requestId})' },
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof table

/** Constraint name -> the failure that its violation means to a client. */
const constraints: Readonly<Record<string, ErrorCode>> = {
  account_email_key: 'account.email_taken',
  account_last_admin: 'account.last_admin',
  blog_post_slug_key: 'post.slug_taken',
  blog_tag_name_key: 'tag.name_taken',
  blog_tag_slug_key: 'tag.slug_taken',
  document_supersedes_id_check: 'document.supersedes_self',
  document_supersedes_missing: 'document.supersedes_missing',
  document_supersedes_id_key: 'document.supersedes_taken',
  document_supersedes_circle: 'document.supersedes_circle',
  document_tags_check: 'document.tags_full',
  rag_file_collection_id_fkey: 'rag.deleted',
  organization_slug_check: 'org.slug_invalid',
  organization_slug_key: 'org.slug_taken',
  organization_owner: 'org.last_owner',
  organization_member_organization_id_user_id_key: 'member.exists',
  organization_member_user_id_fkey: 'account.missing',
  organization_invite_pending_key: 'invite.pending',
}

/** One problem of a request's input, in the shape of a 422 body. */
export interface InputProblem {
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly type: string
}

interface FailureOptions {
  readonly cause?: unknown
  readonly problems?: readonly InputProblem[]
  readonly retryAfter?: number
}

/** A failure that a client may be told of. Thrown through {@link fail}; rendered by the edge, stored by jobs. */
export class Failure extends Error {
  readonly code: ErrorCode
  readonly detail: string
  readonly problems: readonly InputProblem[] | undefined
  /** Seconds after which trying again can help, where that is known. */
  readonly retryAfter: number | undefined

  constructor(code: ErrorCode, detail: string, options?: FailureOptions) {
    super(detail, options?.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'Failure'
    this.code = code
    this.detail = detail
    this.problems = options?.problems
    this.retryAfter = options?.retryAfter
  }

  get status(): number {
    return table[this.code].status
  }

  get retryable(): boolean {
    return 'retry' in table[this.code]
  }
}

/**
 * Makes the failure of a code, its text filled in from `data`.
 * @throws never by itself: write `throw fail('document.missing')`.
 */
export function fail(
  code: ErrorCode,
  data: Readonly<Record<string, string | number>> = {},
  options?: FailureOptions,
): Failure {
  const detail = table[code].detail.replace(/\{(\w+)\}/g, (_, name: string) => String(data[name] ?? name))
  return new Failure(code, detail, options)
}

/** Status and text template of a code, for documentation. */
export function errorRow(code: ErrorCode): ErrorRow {
  return table[code]
}

/** The failure of a stored `{code, detail}`, as a job keeps it. Unknown codes (of an older version) read as internal. */
export function storedFailure(stored: { code: string; detail: string }): Failure {
  return new Failure(stored.code in table ? (stored.code as ErrorCode) : 'internal', stored.detail)
}

interface DatabaseError {
  readonly code?: unknown
  readonly constraint?: unknown
  readonly cause?: unknown
}

/**
 * What a database error means: a violated constraint by its name, overload and outages by SQLSTATE or errno
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html). Anything else is returned as it is.
 */
export function mapDatabaseError(error: unknown): unknown {
  if (error instanceof Failure) return error
  for (let e = error, depth = 0; e instanceof Error && depth < 4; e = e.cause, depth++) {
    const { code, constraint } = e as DatabaseError
    // PostgreSQL quotes whole rows in it, hashes of passwords too, and logs print all that an error holds.
    delete (e as { detail?: unknown }).detail
    if (typeof constraint === 'string') {
      const mapped = constraints[constraint]
      if (mapped !== undefined) return fail(mapped, {}, { cause: error })
    }
    if (OUTAGE_NAMES.has(e.name) || OUTAGE_TEXT.test(e.message))
      return fail('database.down', {}, { cause: error })
    if (typeof code !== 'string') continue
    if (code.startsWith('40')) return fail('database.busy', {}, { cause: error })
    if (code === '57014' || code === '53300' || code === '55P03')
      return fail('database.busy', {}, { cause: error })
    if (OUTAGE.has(code) || code.startsWith('08')) return fail('database.down', {}, { cause: error })
  }
  return error
}

// 57P01 admin_shutdown, 57P02 crash_shutdown, 57P03 cannot_connect_now (starting up), then libuv's errno.
const OUTAGE = new Set([
  '57P01',
  '57P02',
  '57P03',
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
])
const OUTAGE_NAMES = new Set([
  'BackendTerminatedError',
  'BackendTerminatedUnexpectedlyError',
  'ConnectionError',
])
// What `pg` says without a code.
const OUTAGE_TEXT =
  /^(Connection terminated|Client has encountered a connection error|timeout expired|Client was closed)/
