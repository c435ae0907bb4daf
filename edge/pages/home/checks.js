// Checks of the home page. Each reads what it needs, and returns the findings that a person should act on.
//
// A finding is `{ tone, text, detail, href, action, button }`: `tone` is `bad`, `warn` or `note` (something that is not set up), `action` is
// the text of the link, and `button` acts immediately.

import { actionButton } from '../parts/actions.js'
import { call, send } from '../parts/api.js'
import { formatCount, formatDateTime, formatElapsed, now } from '../parts/format.js'
import { bulkButton, jobsPath } from '../monitor/bulk.js'
import { ownAccount, quotas, secondFactor } from './account-checks.js'

// A job that waits longer is worth a look.
const OLD_MS = 600_000
const RECENT_SECONDS = 600
const OWN_SECONDS = 86_400
const MAX_CLOCK_OFFSET_SECONDS = 5
const MAX_GROUPS = 3

const plural = (n, one, many = `${one}s`) => `${formatCount(n)} ${n === 1 ? one : many}`
// Without seconds, because a new text redraws the list.
const ageOf = (iso) => {
  const minutes = Math.max(1, Math.floor((now() - Date.parse(iso)) / 60_000))
  return minutes < 60 ? `${minutes} min` : formatElapsed(minutes * 60_000)
}

/** The checks of an account. Others' work is only for admins. */
export const checksFor = (account) =>
  account.role === 'admin'
    ? [readiness, workersAndQueues, pausedQueues, failures, webhooks, channels, secondFactor, quotas, ownAccount]
    : [failures, webhooks, quotas, ownAccount]

async function readiness() {
  const response = await send('GET', '/ready')
  const state = await response.json().catch(() => null)
  if (state?.database === undefined) return [{ tone: 'bad', text: 'The service does not say whether it is ready', href: '/ready', action: 'Open /ready' }]
  const found = []
  if (!state.database) found.push({ tone: 'bad', text: 'The database is unavailable', detail: 'Check that PostgreSQL runs and accepts connections.' })
  else if (!state.migrated) found.push({ tone: 'bad', text: 'The database is not migrated', detail: 'Start the new version once, or run npm run migrate.' })
  else if (!state.writable)
    found.push({ tone: 'bad', text: 'The database is read-only', detail: 'It is a standby, or an administrator has made it read-only.' })
  if (Math.abs(state.clock_offset_seconds) > MAX_CLOCK_OFFSET_SECONDS)
    found.push({
      tone: 'warn',
      text: `The clocks of service and database differ by ${Math.round(state.clock_offset_seconds)} s`,
      detail: 'Synchronize them, for example with chrony.',
    })
  if (state.replica !== undefined && state.replica.state !== 'used')
    found.push({ tone: 'warn', text: `The replica is not used: ${state.replica.state}`, detail: 'The primary serves all reads meanwhile.' })
  return found
}

async function workersAndQueues() {
  const { queues, workers } = await call('GET', '/api/v1/jobs/overview')
  const own = workers.items.filter(({ queue, alive }) => queue === null && alive)
  const found = []
  if (own.length === 0)
    found.push({ tone: 'bad', text: 'No worker is alive, so jobs wait', detail: 'Start a worker process.', href: '/monitor', action: 'Monitor' })
  else if (own.every(({ drained }) => drained))
    found.push({ tone: 'warn', text: 'All workers are drained, so jobs wait', href: '/monitor', action: 'Resume one' })
  const served = new Set(workers.items.filter(({ alive }) => alive).flatMap((worker) => worker.queues))
  for (const { queue, queued, oldest_at } of queues.items) {
    if (oldest_at === null || now() - Date.parse(oldest_at) < OLD_MS) continue
    const detail = served.has(queue) || own.length === 0 ? `${plural(queued, 'job is', 'jobs are')} queued.` : 'No worker serves this queue.'
    found.push({
      tone: 'warn',
      text: `A job of ${queue} has waited for ${ageOf(oldest_at)}`,
      detail,
      href: jobsPath({ queue, status: 'queued', sort: 'created_at' }),
      action: 'Show the jobs',
    })
  }
  return found
}

async function pausedQueues(_, reload) {
  const { queues } = await call('GET', '/api/v1/queues')
  const resume = (queue) =>
    actionButton('Resume', 'Resuming…', `Resume ${queue}`, async () => {
      await call('POST', `/api/v1/queues/${queue}/resume`)
      await reload()
      return `${queue} is resumed`
    })
  return queues
    .filter(({ paused_at }) => paused_at !== null)
    .map(({ queue, paused_at, queued }) => ({
      tone: 'warn',
      text: `The queue ${queue} is paused`,
      detail: `Since ${formatDateTime(paused_at)}. ${plural(queued, 'job waits', 'jobs wait')}.`,
      button: resume(queue),
    }))
}

async function failures(account) {
  const isAdmin = account.role === 'admin'
  const { groups } = await call('GET', `/api/v1/jobs/failures?seconds=${isAdmin ? RECENT_SECONDS : OWN_SECONDS}`)
  const period = isAdmin ? 'in the last 10 minutes' : 'in the last day'
  const open = groups.filter(({ jobs, retried }) => retried < jobs)
  const found = open.slice(0, MAX_GROUPS).map(({ task, code, jobs, last_detail }) => {
    const filter = { task, code }
    const text = `${plural(jobs, `${task} job`)} failed ${period}`
    return {
      tone: 'bad',
      text,
      detail: `${code}${last_detail ? `: ${last_detail}` : ''}`,
      href: jobsPath({ status: 'failed', ...filter }),
      action: 'Show the jobs',
      button: bulkButton('retry', filter, `Retry all ${task} jobs that failed with ${code}`),
    }
  })
  const rest = open.slice(MAX_GROUPS)
  if (rest.length > 0)
    found.push({
      tone: 'bad',
      text: `${plural(rest.length, 'more kind')} of failure ${period}`,
      href: '/monitor/jobs?view=failures',
      action: 'Failures by task',
    })
  return found
}

async function webhooks({ role }) {
  const lists = await Promise.all([call('GET', '/api/v1/webhooks?limit=100'), role === 'admin' ? call('GET', '/api/v1/webhooks?scope=service&limit=100') : []])
  const found = lists.flat().flatMap(({ id, url, description, disabled_at, failing_since, is_active }) => {
    const link = { href: `/account/webhooks/${id}`, action: 'Show its deliveries' }
    const name = description ?? url ?? `endpoint ${id}`
    if (disabled_at !== null) return [{ tone: 'bad', text: 'A webhook is disabled, because it failed for a day', detail: name, ...link }]
    return failing_since !== null && is_active ? [{ tone: 'warn', text: `A webhook has failed for ${ageOf(failing_since)}`, detail: name, ...link }] : []
  })
  const rest = found.splice(MAX_GROUPS)
  if (rest.length > 0) found.push({ tone: 'bad', text: `${plural(rest.length, 'more webhook')} failed`, href: '/account/webhooks', action: 'Show the webhooks' })
  return found
}

async function channels() {
  const [{ email, sms, call: calls, unknown_sends }, ai, payments] = await Promise.all([
    call('GET', '/api/v1/comms/status'),
    call('GET', '/api/v1/ai/health').catch(() => null),
    call('GET', '/api/v1/payment/admin/status').catch(() => null),
  ])
  const found = []
  const missing = (text, names) => found.push({ tone: 'note', text, detail: names.length > 0 ? `Set ${names.join(', ')}` : '' })
  if (!email.configured) missing('Email', email.missing)
  if (!sms.configured || !calls.configured) missing('Text messages and calls', [...new Set([...sms.missing, ...calls.missing])])
  if (ai?.enabled && !ai.configuration_valid) missing('Chat', ['the API key of a model provider'])
  if (payments !== null && !payments.enabled) missing('Payments', [])
  if (payments?.missing_rights.length > 0)
    found.push({
      tone: 'warn',
      text: 'The key of the payment provider lacks rights',
      detail: payments.missing_rights.join(', '),
      href: '/payments/all',
      action: 'Payments',
    })
  if (unknown_sends > 0)
    found.push({
      tone: 'warn',
      text: `${plural(unknown_sends, 'message has', 'messages have')} an unknown outcome`,
      detail: 'The provider did not say whether it delivered them.',
      href: '/messages?status=unknown',
      action: 'Show messages',
    })
  return found
}
