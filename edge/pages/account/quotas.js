// Sections of the account's quotas and of its budget for AI, as meters.

import { call } from '../parts/api.js'
import { h } from '../parts/dom.js'
import { formatBytes, formatCount, formatDollars, showCountdown } from '../parts/format.js'
import { section } from '../parts/states.js'

const NAMES = {
  documents: 'Documents',
  bytes: 'Size of documents',
  pages: 'Pages of documents',
  organizations: 'Organizations created',
  keys: 'API keys',
  webhook_endpoints: 'Webhook endpoints',
  pending_deliveries: 'Waiting webhook deliveries',
  conversations: 'Conversations',
  collections: 'Collections',
  speech_characters: 'Characters of speeches',
  schedules: 'Schedules',
  worker_queues: 'Worker queues created',
  waiting_jobs: 'Waiting jobs',
}

const BUDGETS = { day_tokens: 'Tokens today', day_cost: 'Cost today', month_tokens: 'Tokens this month', month_cost: 'Cost this month' }

// From this share on, a meter warns.
const NEARLY_FULL = 0.9

/** Makes a line with the name, the figures and the meter of what is used. */
function meter({ name, used, limit, format, note }) {
  const share = limit === null || limit === 0 ? 0 : Math.min(1, used / limit)
  const bar = limit === null ? null : h('progress', { class: share >= NEARLY_FULL ? 'full' : '', value: share, max: 1, 'aria-label': `${name}: share used` })
  const figures = h('span', { class: 'figure' }, format(used), limit === null ? null : h('span', { class: 'soft' }, ` of ${format(limit)}`))
  return h('li', {}, h('span', { class: 'pair' }, h('span', {}, name), figures), bar, note)
}

export const makeQuotas = (account) =>
  section({
    title: 'Quotas',
    note: account.role === 'admin' ? 'Admins have no quotas.' : 'Requests beyond a quota are refused. Admins can change the quotas of an account.',
    rows: 6,
    read: () => call('GET', '/api/v1/auth/me/quotas'),
    show: ({ quotas }) => {
      if (quotas.length === 0) return null
      const lines = quotas.map(({ kind, used, quota }) => meter({ name: NAMES[kind] ?? kind.replaceAll('_', ' '), used, limit: quota, format: kind === 'bytes' ? formatBytes : formatCount }))
      return h('ul', { class: 'meters' }, ...lines)
    },
  })

export const makeBudget = (account) =>
  section({
    title: 'AI budget',
    note: account.role === 'admin' ? 'Admins have no budget.' : 'Days and months are those of UTC. Admins can change the budget of an account.',
    rows: 2,
    read: () => call('GET', '/api/v1/ai/usage/budget'),
    show: ({ account: budgets }) => {
      if (budgets === null || budgets.length === 0) return null
      const lines = budgets.map(({ kind, used, reserved, limit, resets_at }) => {
        const left = h('span', { class: 'figure' })
        showCountdown(left, resets_at)
        const note = limit === null ? null : h('small', { class: 'soft' }, 'Starts over ', left)
        return meter({ name: BUDGETS[kind] ?? kind, used: used + reserved, limit, format: kind.endsWith('cost') ? formatDollars : formatCount, note })
      })
      return h('ul', { class: 'meters' }, ...lines)
    },
    empty: 'No budget applies to this account.',
  })
