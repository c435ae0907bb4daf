// Checks of the account itself; see `checks.js`.

import { call } from '../parts/api.js'
import { formatBytes, formatCount, formatDateTime } from '../parts/format.js'

// Share of a quota from which it is nearly used up.
const FULL = 0.9

export async function secondFactor() {
  const [totp, passkeys] = await Promise.all([call('GET', '/api/v1/auth/totp'), call('GET', '/api/v1/auth/passkeys?limit=1').catch(() => [])])
  if (totp.is_on || passkeys.length > 0) return []
  return [
    {
      tone: 'warn',
      text: 'Your admin account has no second factor',
      detail: 'A stolen password would be enough to control the service.',
      href: '/account/security',
      action: 'Add one',
    },
  ]
}

const QUOTA_NAMES = {
  bytes: 'bytes of documents',
  pages: 'pages of documents',
  keys: 'API keys',
  webhook_endpoints: 'webhooks',
  pending_deliveries: 'pending webhook deliveries',
  speech_characters: 'characters of speech',
  worker_queues: 'worker queues',
  waiting_jobs: 'queued jobs',
}

export async function quotas() {
  const { quotas: all } = await call('GET', '/api/v1/auth/me/quotas').catch((error) => {
    // Without authentication there are no quotas.
    if (error.status === 409) return { quotas: [] }
    throw error
  })
  const near = all.filter(({ used, quota }) => quota !== null && quota > 0 && used >= quota * FULL)
  return near.map(({ kind, used, quota }) => {
    const format = kind === 'bytes' ? formatBytes : formatCount
    const isFull = used >= quota
    return {
      tone: isFull ? 'bad' : 'warn',
      text: `Your quota of ${QUOTA_NAMES[kind] ?? kind} is ${isFull ? 'used up' : 'nearly used up'}`,
      detail: `${format(used)} of ${format(quota)}. Delete what you do not need, or ask an admin for more.`,
      href: '/account',
      action: 'Show quotas',
    }
  })
}

export async function ownAccount({ id }) {
  if (id === 0) return []
  const { is_verified, deletion_at, email } = await call('GET', '/api/v1/auth/me')
  const found = []
  if (deletion_at !== null)
    found.push({
      tone: 'bad',
      text: `Your account will be deleted on ${formatDateTime(deletion_at)}`,
      detail: 'You can still keep it.',
      href: '/account/data',
      action: 'Keep the account',
    })
  if (!is_verified) found.push({ tone: 'warn', text: 'Your email address is not verified', detail: email, href: '/account', action: 'Verify it' })
  return found
}
