// How much the account uses of what it may have.

import { call } from './api.js'
import { h, panel, table } from './dom.js'
import { bytes, count } from './format.js'

const NAMES = {
  documents: 'Documents',
  bytes: 'Bytes of documents',
  pages: 'Pages of documents',
  organizations: 'Organizations created',
  keys: 'API keys',
  webhook_endpoints: 'Webhook endpoints',
  pending_deliveries: 'Pending webhook deliveries',
  conversations: 'Conversations',
  collections: 'Collections',
  waiting_jobs: 'Waiting jobs',
}

/** The panel; null where nobody signs in. */
export async function makeQuotas() {
  try {
    const { quotas } = await call('GET', '/api/v1/auth/me/quotas')
    return panelOf(quotas)
  } catch (error) {
    if (error.status === 409) return null
    throw error
  }
}

function panelOf(quotas) {
  const { node, body, row } = table('Quotas', [
    ['Kind', 'name'],
    ['Used', 'number'],
    ['Quota', 'number'],
    ['Part', 'chart small'],
  ])
  body.append(
    ...quotas.map(({ kind, used, quota, setting }) => {
      const text = kind === 'bytes' ? bytes : count
      const name = NAMES[kind] ?? kind
      const part = quota === null ? '' : h('progress', { value: Math.min(used, quota), max: quota, 'aria-label': `${name}: part used` })
      return row(h('strong', { title: setting }, name), text(used), quota === null ? 'none' : text(quota), part)
    }),
  )
  return panel('Quotas', {}, node, h('p', { class: 'soft' }, 'Beyond a quota, requests are refused. Admins have none, and may change those of an account.'))
}
