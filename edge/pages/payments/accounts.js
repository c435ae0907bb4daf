// Column and filter of the accounts in lists of payments.

import { h } from '../parts/dom.js'
import { ownerName } from '../monitor/owners.js'

/** Makes the column of an account. Its link shows only rows of this account. */
export const accountColumn = (account) => ({
  name: 'Account',
  kind: 'text',
  show: ({ account_id: id }) =>
    id === null ? h('span', { class: 'soft' }, 'Guest') : h('a', { href: `?paid.account_id=${id}&plans.account_id=${id}&disputes.account_id=${id}` }, ownerName(id, account)),
})

/** Makes the filter of an account. */
export const accountFilter = () => ({ name: 'account_id', label: 'Account number', type: 'number' })
