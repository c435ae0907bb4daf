import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ADDRESS_SIDES } from '../../sql/accounts/email-changes.ts'
import { forgetCustomer } from '../../tasks/payments/forget.task.ts'
import { enqueue } from '../../tasks/task.ts'
import { type Account, createEmail, PASSWORD } from '../edge/harness.ts'
import { createJobSettings } from '../job-settings.ts'
import { emailChangeTokenOf } from '../keys.ts'
import { getSharedPaymentsWorld } from '../payments-world.ts'
import { until } from '../until.ts'

const { api, db, query, stripe } = await getSharedPaymentsWorld()

/** Registers an account whose first checkout makes it a customer. */
async function addCustomer() {
  const who = await api.register(createEmail())
  const json = { price_id: 'price_1', mode: 'payment' }
  assert.equal((await api.post('/api/v1/payment/checkout', { token: who.token, json })).status, 200)
  const find = () => stripe.account.customers.find(({ metadata }) => ownerOf(metadata) === String(who.id))!
  return { who, find }
}
const ownerOf = (metadata: unknown): string => (metadata as { user_id: string }).user_id

/** Changes the address of an account, confirmed by both addresses. */
async function changeEmail(who: Account, email: string): Promise<void> {
  const json = { email, password: PASSWORD }
  const asked = await api.post('/api/v1/auth/me/email', { token: who.token, json })
  assert.equal(asked.status, 201, asked.text)
  const [change] = await query('select id from email_change where account_id = $1', [who.id])
  for (const side of ADDRESS_SIDES) {
    const token = emailChangeTokenOf(side, String(change!.id))
    const answer = await api.post('/api/v1/auth/email-change/confirm', { json: { token } })
    assert.equal(answer.status, 200, answer.text)
  }
}

test('the customer follows the address and the name of its account, also while the provider fails', async () => {
  const { who, find } = await addCustomer()
  const email = createEmail()
  stripe.faults.push('broken', 'busy')
  await changeEmail(who, email)
  await until('the customer has the new address', async () => find().email === email)
  const path = `/api/v1/auth/users/${who.id}?full_name=Ann`
  assert.equal((await api.call('PATCH', path, { token: who.token })).status, 200)
  await until('the customer has the new name', async () => find().name === 'Ann')
  assert.equal(find().email, email)
})

test('an account that is no customer causes no request', async () => {
  const who = await api.register(createEmail())
  await changeEmail(who, createEmail())
  const findJob = () =>
    query(
      `select result from job where name = 'payments.address' and status = 'done' and payload ->> 'user_id' = $1`,
      [String(who.id)],
    )
  const [job] = await until('the job is done', async () => {
    const rows = await findJob()
    return rows.length > 0 && rows
  })
  assert.deepEqual(job!.result, { updated: false })
})

test('the customer of a deleted account loses its personal data and stays, and this is audited', async () => {
  const { who, find } = await addCustomer()
  const provider_customer_id = find().id
  const payload = { account_id: who.id, provider_customer_id }
  stripe.faults.push('broken')
  await db.transaction((tx) =>
    enqueue(tx, forgetCustomer, payload, { ownerId: null, settings: createJobSettings() }),
  )
  await until('the customer is cleared', async () => find().email === null)
  const { name, phone, address, shipping, description } = find()
  assert.deepEqual([name, phone, address, shipping, description], [null, null, null, null, null])
  const readEvents = () =>
    query(
      `select account_id, data from audit_event where kind = 'payment.customer_cleared' and account_id = $1`,
      [who.id],
    )
  const [event] = await until('the event is written', async () => {
    const rows = await readEvents()
    return rows.length > 0 && rows
  })
  assert.deepEqual(event, { account_id: who.id, data: { provider_customer_id } })
})
