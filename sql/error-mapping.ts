import { getSystemErrorName } from 'node:util'
import { type ErrorCode, Failure, fail } from './errors.ts'

/** Maps errors of PostgreSQL and of the operating system to failures. */

/** Maps the name of a violated constraint to an error code. */
const codeByConstraint: Readonly<Record<string, ErrorCode>> = {
  account_email_key: 'account.email_taken',
  account_last_admin: 'account.last_admin',
  // The account was deleted while its request was running.
  ai_conversation_owner_id_fkey: 'auth.required',
  webhook_endpoint_account_id_fkey: 'auth.required',
  // The API key was deleted while its request was running.
  api_key_allowance_key_id_fkey: 'auth.required',
  ai_budget_account_id_fkey: 'account.missing',
  ai_budget_key_id_fkey: 'key.missing',
  blog_post_author_id_fkey: 'auth.required',
  blog_post_slug_key: 'post.slug_taken',
  blog_revision_editor_id_fkey: 'auth.required',
  blog_tag_name_key: 'tag.name_taken',
  blog_tag_slug_key: 'tag.slug_taken',
  comms_send_owner_id_fkey: 'auth.required',
  comms_template_pkey: 'template.name_taken',
  document_owner_id_fkey: 'auth.required',
  document_owner_id_sha256_key: 'document.stored_again',
  document_supersedes_id_check: 'document.supersedes_self',
  document_supersedes_missing: 'document.supersedes_missing',
  document_supersedes_id_key: 'document.supersedes_taken',
  document_supersedes_circle: 'document.supersedes_circle',
  document_tags_check: 'document.tags_full',
  job_owner_id_fkey: 'auth.required',
  job_owner_quota: 'quota.waiting_jobs',
  job_batch_open: 'batch.closed',
  job_batch_cycle: 'batch.cycle',
  job_dependency_exists: 'job.missing',
  schedule_owner_id_fkey: 'auth.required',
  voice_transcription_owner_id_fkey: 'auth.required',
  rag_file_collection_id_fkey: 'rag.deleted',
  passkey_credential_id_key: 'passkey.exists',
  organization_slug_check: 'org.slug_invalid',
  organization_slug_key: 'org.slug_taken',
  organization_owner: 'org.last_owner',
  organization_member_owner: 'org.owner_inactive',
  organization_member_organization_id_user_id_key: 'member.exists',
  organization_member_user_id_fkey: 'account.missing',
  organization_invite_pending_key: 'invite.pending',
  worker_queue_account_id_fkey: 'auth.required',
  worker_queue_created_by_fkey: 'auth.required',
  worker_queue_pkey: 'worker_queue.name_taken',
  worker_task_queue_fkey: 'worker_queue.missing',
}

// Errno names of a machine that is short of something: https://man7.org/linux/man-pages/man3/errno.3.html
const SHORTAGE_CODES = new Set([
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'ENOSPC',
  'EDQUOT',
  'EAGAIN',
  'ENOBUFS',
  'EADDRNOTAVAIL',
])
// Node's codes of a module that it can't find. It reports them, too, if it can't open the files of a package.
const LOAD_CODES = new Set(['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'])

/**
 * Returns `fail('service.short')` for a shortage of the machine and for a module that could not be loaded. Either may be
 * a cause of the error. Returns any other error unchanged.
 */
export function mapShortage(error: unknown): unknown {
  const isShortage = hasCode(error, SHORTAGE_CODES) || isLoadFailure(error)
  return isShortage ? fail('service.short', {}, { cause: error }) : error
}

/** True if a module could not be loaded. Node may remember this for the life of the thread. */
export const isLoadFailure = (error: unknown): boolean => hasCode(error, LOAD_CODES)

function hasCode(error: unknown, codes: ReadonlySet<string>): boolean {
  for (let e = error, depth = 0; e instanceof Error && depth < 6; e = e.cause, depth++)
    if (codes.has(String((e as { code?: unknown }).code)) || codes.has(nameErrno(e))) return true
  return false
}

/** Returns the name of an error's errno: libraries such as nodemailer replace the code. */
function nameErrno(error: object): string {
  const { errno } = error as { readonly errno?: unknown }
  return typeof errno === 'number' && errno < 0 ? getSystemErrorName(errno) : ''
}

interface DatabaseError {
  readonly code?: unknown
  readonly constraint?: unknown
  readonly cause?: unknown
}

/**
 * Maps a database error to a failure. Maps constraint violations by constraint name, and overload and outages by
 * SQLSTATE or errno (https://www.postgresql.org/docs/current/errcodes-appendix.html). Returns any other error
 * unchanged.
 */
export function mapDatabaseError(error: unknown): unknown {
  if (error instanceof Failure) return error
  let [isLost, hasCode] = [false, false]
  for (let e = error, depth = 0; e instanceof Error && depth < 4; e = e.cause, depth++) {
    const { code, constraint } = e as DatabaseError
    // PostgreSQL quotes whole rows here, including password hashes, and logs print every property of an error.
    delete (e as { detail?: unknown }).detail
    if (typeof constraint === 'string') {
      const mapped = codeByConstraint[constraint]
      if (mapped !== undefined) return fail(mapped, {}, { cause: error })
    }
    if (OUTAGE_MESSAGE_PATTERN.test(e.message)) return fail('database.down', {}, { cause: error })
    isLost ||= CONNECTION_ERROR_NAMES.has(e.constructor.name)
    if (typeof code !== 'string') continue
    hasCode = true
    if (code.startsWith('40')) return fail('database.busy', {}, { cause: error })
    // Somebody cancelled the statement with pg_cancel_backend, as pg_terminate_backend ends a connection.
    if (code === '57014' && CANCELLED_PATTERN.test(e.message))
      return fail('database.down', {}, { cause: error })
    if (code === '57014') return fail('database.too_slow', {}, { cause: error })
    if (OUTAGE_CODES.has(code) || SHORTAGE_CODES.has(code) || code.startsWith('08') || code.startsWith('57P'))
      return fail('database.down', {}, { cause: error })
    // Class 53 means that memory, locks or connections ran out. It does not count as an outage, because the statement
    // itself may be the cause, and jobs wait without limit for an outage to end.
    if (code.startsWith('53') || code === '55P03') return fail('database.busy', {}, { cause: error })
  }
  // slonik also reports a wrong password as a failed connection, but then the cause has a code.
  return isLost && !hasCode ? fail('database.down', {}, { cause: error }) : error
}

// Codes of outages, except those in the classes 08 (connection exceptions) and 57P (shutting down, starting up). The
// SQLSTATEs are read_only_sql_transaction (a standby or read-only primary), idle_in_transaction_session_timeout (a
// frozen process), disk_full and io_error. The others are libuv's errno names.
const OUTAGE_CODES = new Set([
  '25006',
  '25P03',
  '53100',
  '58030',
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
])
// Names of slonik's connection errors, whose instances do not set `name`.
const CONNECTION_ERROR_NAMES = new Set([
  'BackendTerminatedError',
  'BackendTerminatedUnexpectedlyError',
  'ConnectionError',
])
// PostgreSQL's message, unless `lc_messages` selects another language.
const CANCELLED_PATTERN = /due to user request/
// Messages of `pg` errors that have no code, and of a full NOTIFY queue. The code of the latter, 54000, also stands for
// limits that a statement itself exceeds.
const OUTAGE_MESSAGE_PATTERN =
  /^(Connection terminated|Client has encountered a connection error|timeout expired|Client was closed|too many notifications in the NOTIFY queue)/
