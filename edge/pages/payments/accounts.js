// Names of the accounts in lists of payments, which have only their ids.

import { h, setText } from '../parts/dom.js'
import { readEmail } from '../monitor/owners.js'

/** Makes the column of an account. Its link shows only rows of this account. */
export const accountColumn = () => ({
  name: 'Account',
  kind: 'text',
  show: ({ account_id: id }) => {
    if (id === null) return h('span', { class: 'soft' }, 'Guest')
    const link = h('a', { href: `?paid.account_id=${id}&plans.account_id=${id}&disputes.account_id=${id}` }, `Account ${id}`)
    readEmail(id).then((email) => email !== null && setText(link, email))
    return link
  },
})

/** Makes the filter of an account. */
export const accountFilter = () => ({ name: 'account_id', label: 'Account number', type: 'number' })
