// Panel of the account's quotas and their usage.

import { call } from './api.js'
import { h, panel, table } from './dom.js'
import { formatBytes, formatCount } from './format.js'

const NAMES = {
  documents: 'Documents',
  bytes: 'Document bytes',
  pages: 'Document pages',
  organizations: 'Organizations created',
  keys: 'API keys',
  webhook_endpoints: 'Webhook endpoints',
  pending_deliveries: 'Pending webhook deliveries',
  conversations: 'Conversations',
  collections: 'Collections',
  waiting_jobs: 'Queued jobs',
}

/** Makes the panel. Returns null if authentication is disabled. */
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
    ['Resource', 'name'],
    ['Used', 'number'],
    ['Quota', 'number'],
    ['Usage', 'chart small'],
  ])
  body.append(
    ...quotas.map(({ kind, used, quota, setting }) => {
      const format = kind === 'bytes' ? formatBytes : formatCount
      const name = NAMES[kind] ?? kind
      const bar = quota === null ? '' : h('progress', { value: Math.min(used, quota), max: quota, 'aria-label': `${name}: share used` })
      return row(h('strong', { title: setting }, name), format(used), quota === null ? 'none' : format(quota), bar)
    }),
  )
  return panel('Quotas', {}, node, h('p', { class: 'soft' }, 'Requests beyond a quota are rejected. Admins have no quotas and can change the quotas of any account.'))
}
