// Email addresses of accounts by their ids, for admins. The page reads each account once.

import { call } from '../parts/api.js'
import { h, setText } from '../parts/dom.js'

const known = new Map()

/** Reads the email of an account; null if it cannot be read. */
function readEmail(id) {
  if (!known.has(id))
    known.set(
      id,
      call('GET', `/api/v1/auth/users/${id}`).then(
        ({ email }) => email,
        () => null,
      ),
    )
  return known.get(id)
}

/** Makes a node with the email of an account; with the number until it is known, or if it cannot be read. */
export function ownerName(id, account) {
  if (id === account.id) return h('span', {}, account.email === undefined ? 'You' : account.email)
  const node = h('span', {}, `Account ${id}`)
  if (account.role === 'admin') readEmail(id).then((email) => email !== null && setText(node, email))
  return node
}
