// The account's own subscriptions.

import { actionButton, button, offerUndo } from '../parts/actions.js'
import { confirmAction, openForm } from '../parts/dialog.js'
import { callAndWait } from '../parts/jobs.js'
import { list } from '../parts/list.js'
import { describePrice } from './catalog.js'
import { SUBSCRIPTION_COLUMNS, SUBSCRIPTION_FILTERS } from './rows.js'

const pathOf = ({ id }, action) => `/api/v1/payment/subscriptions/${id}/${action}`

/** `prices` is the section of the catalog, which gives the plans to change to. */
export const subscriptionList = ({ hasProvider, prices }) =>
  list({
    title: 'Subscriptions',
    name: 'plans',
    pageSize: 20,
    path: '/api/v1/payment/subscriptions',
    empty: 'You have no subscriptions.',
    filters: SUBSCRIPTION_FILTERS,
    columns: SUBSCRIPTION_COLUMNS,
    actions: hasProvider ? (one, rows) => (one.status === 'canceled' ? [] : [planButton(one, rows, prices), endButton(one, rows)]) : undefined,
  })

/** Makes the button that cancels a subscription with its paid period, or that resumes one which is to end. */
function endButton(one, rows) {
  const isEnding = one.cancel_at_period_end || one.cancel_at !== null
  return isEnding ? resumeButton(one, rows) : cancelButton(one, rows)
}

const cancelButton = (one, rows) =>
  actionButton('Cancel', 'Cancelling…', `Cancel ${one.plan_name}`, async () => {
    await callAndWait('POST', pathOf(one, 'cancel'))
    rows.replace({ ...one, cancel_at_period_end: true })
    offerUndo(`${one.plan_name} ends with the paid period`, () => resume(one, rows))
    return null
  })

/** Resumes a subscription. Within the second of its cancellation, the cancellation wins, so it tries once more. */
async function resume(one, rows) {
  const path = pathOf(one, 'resume')
  let resumed = await callAndWait('POST', path)
  if (resumed.cancel_at_period_end) {
    await new Promise((resolve) => setTimeout(resolve, 1100))
    resumed = await callAndWait('POST', path)
  }
  rows.replace(resumed)
}

const resumeButton = (one, rows) =>
  actionButton('Resume', 'Resuming…', `Resume ${one.plan_name}`, async () => {
    await resume(one, rows)
    return `${one.plan_name} renews again`
  })

const planButton = (one, rows, prices) => button('Change plan', () => changePlan(one, rows, prices), { label: `Change plan of ${one.plan_name}` })

const PRORATIONS = [
  ['create_prorations', 'With the next invoice'],
  ['always_invoice', 'With an invoice of its own, now'],
  ['none', 'Not at all'],
]

async function changePlan(one, rows, prices) {
  const plans = (await prices.read()).filter(({ mode }) => mode === 'subscription')
  await openForm(`Change plan of ${one.plan_name}`, {
    operation: 'POST /api/v1/payment/subscriptions/{id}/plan',
    fields: ['price_id', 'proration'],
    set: {
      price_id: { label: 'New plan', type: 'enum', isRequired: true, options: plans.map((price) => [price.price_id, `${price.name}, ${describePrice(price)}`]) },
      proration: { label: 'Charge the rest of this period', options: PRORATIONS, initial: 'create_prorations', isRequired: true },
    },
    submit: 'Change plan',
    busy: 'Changing…',
    send: (json) => sendPlan(one, json),
    done: (changed) => {
      if (changed === null) return null
      rows.replace(changed)
      return `Your plan is now ${changed.plan_name}`
    },
  })
}

/** Changes the plan. Asks before a second subscription of the same price. */
async function sendPlan(one, json) {
  try {
    return await callAndWait('POST', pathOf(one, 'plan'), { json })
  } catch (error) {
    if (error.code !== 'subscription.running') throw error
    if (!(await confirmAction('Pay this plan twice?', 'Another of your subscriptions already has this plan.', 'Pay it twice'))) return null
    return callAndWait('POST', pathOf(one, 'plan'), { json: { ...json, allow_second: true } })
  }
}
