import { readWithin, type Transaction } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import {
  type AfterOutcome,
  countVisibleJobs,
  type EnqueuedJob,
  holdJobs,
  MAX_DEPENDENCIES,
} from '../../../sql/jobs/jobs.ts'
import { addJobCallbacks, type JobCallback } from '../../../sql/webhooks/webhooks.ts'
import { createWebhookSecret, webhookSealUseOf } from '../../../tasks/webhooks/signature.ts'
import { validateWebhookUrl, webhookHostOf } from '../../../tasks/webhooks/url.ts'
import type { Caller } from '../access/auth.ts'
import type { Edge } from '../context.ts'
import type { AdmittedRequest } from '../request/admitted-request.ts'
import { failInvalidField } from '../request/input.ts'

/** The links that any operation that adds a job accepts in its query: a callback, and jobs to wait for. */
export interface JobLinks {
  readonly callback: JobCallback | null
  readonly dependencies: Dependencies | null
}

export interface Dependencies {
  /** Different ids. */
  readonly ids: readonly string[]
  readonly outcome: AfterOutcome
}

type Requester = Pick<AdmittedRequest, 'edge' | 'exchange'>

/**
 * Parses `callback_url`, `after` and `after_outcome` of the query. Throws request.invalid for a URL that webhooks may not
 * call, or one without `background` (true), and webhook.no_account if the caller has no account.
 *
 * @throws fail('job.missing') if an id is not a UUID.
 */
export function parseJobLinks({ edge, exchange }: Requester, isBackground: boolean): JobLinks | null {
  const { caller, request } = exchange
  if (request.query === '') return null
  const given = new URLSearchParams(request.query)
  const url = given.get('callback_url')
  const callback = url === null ? null : parseCallback(edge, caller, url, isBackground)
  const dependencies = parseDependencies(given)
  return callback === null && dependencies === null ? null : { callback, dependencies }
}

function parseCallback(edge: Edge, caller: Caller | null, url: string, isBackground: boolean): JobCallback {
  if (!isBackground) throw failInvalidField('query', 'callback_url', 'needs background=true', 'custom')
  return buildCallback(edge, caller, url, 'query')
}

/** Returns the callback to a URL. @throws fail('request.invalid'), fail('webhook.no_account') */
export function buildCallback(
  edge: Edge,
  caller: Caller | null,
  url: string,
  part: 'query' | 'body',
): JobCallback {
  const problem = validateWebhookUrl(url, edge.settings.webhooks)
  if (problem !== null) throw failInvalidField(part, 'callback_url', problem, 'custom')
  if (caller === null || caller.ownerId === null) throw fail('webhook.no_account')
  const secret = edge.keys.seal(webhookSealUseOf(caller.ownerId), createWebhookSecret())
  return { accountId: caller.ownerId, url, host: webhookHostOf(url), keyId: caller.key?.id ?? null, secret }
}

function parseDependencies(given: URLSearchParams): Dependencies | null {
  const outcome = given.get('after_outcome') ?? 'done'
  if (outcome !== 'done' && outcome !== 'any')
    throw failInvalidField('query', 'after_outcome', 'must be done or any', 'invalid_value')
  const names = given.getAll('after').flatMap((text) => text.split(','))
  const ids = [...new Set(names.map((name) => name.trim().toLowerCase()))].filter((id) => id !== '')
  if (ids.length === 0) {
    if (given.has('after')) throw failInvalidField('query', 'after', 'must name a job', 'custom')
    if (given.has('after_outcome')) throw failInvalidField('query', 'after_outcome', 'needs after', 'custom')
    return null
  }
  if (ids.length > MAX_DEPENDENCIES)
    throw failInvalidField('query', 'after', `must not name more than ${MAX_DEPENDENCIES} jobs`, 'too_big')
  if (!ids.every(isUuid)) throw fail('job.missing')
  return { ids, outcome }
}

/**
 * Links a job that this transaction has added. A job that it has joined cannot wait for others.
 * @throws fail('job.missing') if the caller cannot see a dependency, fail('job.joined').
 */
export async function linkJob(
  tx: Transaction,
  { edge, exchange }: Requester,
  { jobId, joined }: { readonly jobId: string; readonly joined: boolean },
  links: JobLinks,
): Promise<void> {
  await linkJobs(tx, { edge, exchange }, [{ job_id: jobId, joined }], links)
}

/** Links several jobs as {@link linkJob} does. */
export async function linkJobs(
  tx: Transaction,
  { edge, exchange }: Requester,
  jobs: readonly Pick<EnqueuedJob, 'job_id' | 'joined'>[],
  { callback, dependencies }: JobLinks,
): Promise<void> {
  const ids = [...new Set(jobs.map(({ job_id }) => job_id))]
  const joined = [...new Set(jobs.filter((job) => job.joined).map(({ job_id }) => job_id))]
  if (callback !== null) {
    // A task may join a job of another account.
    if (joined.length > 0) await requireVisibleJobs(tx, edge, exchange.caller, joined)
    await tx.run(addJobCallbacks(ids, callback))
  }
  if (dependencies === null) return
  if (joined.length > 0) throw fail('job.joined')
  await requireVisibleJobs(tx, edge, exchange.caller, dependencies.ids)
  await tx.run(holdJobs(ids, dependencies.ids, dependencies.outcome))
}

/** @throws fail('job.missing') unless the caller may see all of these different jobs. */
export async function requireVisibleJobs(
  tx: Transaction,
  { settings }: Edge,
  caller: Caller | null,
  ids: readonly string[],
): Promise<void> {
  const viewer = [caller?.ownerId ?? null, caller?.role === 'admin'] as const
  const count = await readWithin(tx, countVisibleJobs, [...viewer, ids, settings.jobRetention])
  if (count !== String(ids.length)) throw fail('job.missing')
}
