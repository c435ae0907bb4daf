// Names of the accounts in lists of payments, which have only their ids.

import { call } from '../parts/api.js'
import { h, setText } from '../parts/dom.js'

const addresses = new Map()

/** Reads the address of an account once; its id if the account is gone. */
function readAddress(id) {
  if (!addresses.has(id))
    addresses.set(
      id,
      call('GET', `/api/v1/auth/users/${id}`).then(
        ({ email }) => email,
        () => `Account ${id}`,
      ),
    )
  return addresses.get(id)
}

/** Makes the column of an account. Its link shows only rows of this account. */
export const accountColumn = () => ({
  name: 'Account',
  kind: 'text',
  show: ({ account_id: id }) => {
    if (id === null) return h('span', { class: 'soft' }, 'Guest')
    const link = h('a', { href: `?paid.account_id=${id}&plans.account_id=${id}&disputes.account_id=${id}` }, `Account ${id}`)
    readAddress(id).then((address) => setText(link, address))
    return link
  },
})

/** Makes the filter of an account. */
export const accountFilter = () => ({ name: 'account_id', label: 'Account number', type: 'number' })
