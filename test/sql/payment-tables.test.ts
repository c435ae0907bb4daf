import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../database.ts'

const { query } = await createTestDatabase()
const triedConstraints = new Set<string>()

async function assertBroken(constraint: string, text: string): Promise<void> {
  await assert.rejects(
    query(text),
    (error: { constraint?: string }) => error.constraint === constraint,
    constraint,
  )
  triedConstraints.add(constraint)
}
const formatFacts = (given: object): string =>
  `'${JSON.stringify(Object.fromEntries(Object.entries(given).map(([key, value]) => [key, ['', value]])))}'`
const buildPaymentInsert = (given: object = {}): string =>
  `insert into payment_transaction (facts) values (${formatFacts({ money: { amount: 100, currency: 'usd' }, outcome: 'succeeded', created: 1, ...given })})`
const buildEventInsert = (given: string): string =>
  `insert into payment_event (id, type, created_at, data, applied_at) values ${given}`

describe('constraints', () => {
  test('of customers', async () => {
    const [account] = await query(
      `insert into account (email, password_hash) values ('a@example.com', 'x') returning id`,
    )
    await query(
      `insert into payment_customer (user_id, provider_customer_id) values (${account!.id}, 'cus_1')`,
    )
    await assertBroken(
      'payment_customer_user_id_key',
      `insert into payment_customer (user_id, provider_customer_id) values (${account!.id}, 'cus_2')`,
    )
    await assertBroken(
      'payment_customer_provider_customer_id_key',
      `insert into payment_customer (provider_customer_id) values ('cus_1')`,
    )
    await assertBroken(
      'payment_customer_user_id_fkey',
      `insert into payment_customer (user_id, provider_customer_id) values (999999, 'cus_3')`,
    )
    await assertBroken(
      'payment_customer_same_as_fkey',
      `insert into payment_customer (provider_customer_id, replaced_by) values ('cus_4', 999999)`,
    )
  })

  test('of transactions', async () => {
    await query(buildPaymentInsert())
    await assertBroken(
      'payment_transaction_amount_check',
      buildPaymentInsert({ money: { amount: -1, currency: 'usd' } }),
    )
    await assertBroken(
      'payment_transaction_currency_check',
      buildPaymentInsert({ money: { amount: 1, currency: 'USD' } }),
    )
    await assertBroken('payment_transaction_status_check', buildPaymentInsert({ outcome: 'lost' }))
    await assertBroken('payment_transaction_refunds_check', 'update payment_transaction set refunds = 101')
    await assertBroken('payment_transaction_refunds_check', 'update payment_transaction set reserved = -1')
    await assertBroken(
      'payment_transaction_customer_id_fkey',
      'update payment_transaction set customer_id = 999999',
    )
    await assertBroken(
      'payment_transaction_charge_id_fkey',
      'update payment_transaction set charge_id = 999999',
    )
    await query(`update payment_transaction set job_id = '00000000-0000-0000-0000-000000000001'`)
    await assertBroken(
      'payment_transaction_job_id_key',
      `insert into payment_transaction (job_id) values ('00000000-0000-0000-0000-000000000001')`,
    )
    await query(`insert into payment_reference values ('pi_1', (select min(id) from payment_transaction))`)
    await assertBroken(
      'payment_reference_pkey',
      `insert into payment_reference values ('pi_1', (select min(id) from payment_transaction))`,
    )
    await assertBroken(
      'payment_reference_transaction_id_fkey',
      `insert into payment_reference values ('pi_2', 999999)`,
    )
  })

  test('of subscriptions and disputes', async () => {
    const subscription = (id: string, given: object) =>
      `insert into payment_subscription (provider_subscription_id, facts) values ('${id}', ${formatFacts(given)})`
    const dispute = (id: string, status: string) =>
      `insert into payment_dispute (provider_dispute_id, facts) values ('${id}', ${formatFacts({ created: 1, state: { status, event_type: 'x', at: 1 } })})`
    await query(subscription('sub_1', {}))
    await assertBroken('payment_subscription_provider_subscription_id_key', subscription('sub_1', {}))
    await assertBroken('payment_subscription_status_check', subscription('sub_2', { status: 'paused' }))
    await assertBroken(
      'payment_subscription_customer_id_fkey',
      'update payment_subscription set customer_id = 999999',
    )
    await query(dispute('du_1', 'won'))
    await assertBroken('payment_dispute_provider_dispute_id_key', dispute('du_1', 'won'))
    await assertBroken('payment_dispute_status_check', dispute('du_2', 'closed'))
    await assertBroken(
      'payment_dispute_transaction_id_fkey',
      'update payment_dispute set transaction_id = 999999',
    )
  })

  test('a dispute has the customer of its payment, whichever is known first', async () => {
    const [ann, bob] = (await query(
      `insert into payment_customer (provider_customer_id) values ('cus_ann'), ('cus_bob') returning id`,
    )) as [{ id: number }, { id: number }]
    const addPayment = async (customer: number | null): Promise<number> => {
      const [row] = await query('insert into payment_transaction (customer_id) values ($1) returning id', [
        customer,
      ])
      return row!.id as number
    }
    const customer = async () =>
      (await query(`select customer_id from payment_dispute where provider_dispute_id = 'du_owned'`))[0]!
        .customer_id
    await query(
      `insert into payment_dispute (provider_dispute_id, customer_id, facts) values ('du_owned', $1, ${formatFacts({ created: 1, state: { status: 'won', event_type: 'x', at: 1 } })})`,
      [ann.id],
    )
    assert.equal(await customer(), null)
    const [known, unknown] = [await addPayment(ann.id), await addPayment(null)]
    const write = (set: string, value: number | null) =>
      query(`update payment_dispute set ${set} = $1 where provider_dispute_id = 'du_owned'`, [value])
    await write('transaction_id', known)
    assert.equal(await customer(), ann.id)
    await write('customer_id', bob.id)
    assert.equal(await customer(), ann.id)
    await write('transaction_id', unknown)
    assert.equal(await customer(), null)
    await query('update payment_transaction set customer_id = $1 where id = $2', [bob.id, unknown])
    assert.equal(await customer(), bob.id)
    await write('transaction_id', null)
    assert.equal(await customer(), null)
  })

  test('of events: their data is stored until they are applied', async () => {
    await query(buildEventInsert(`('evt_1', 'x', now(), '{}', null), ('evt_2', 'x', now(), null, now())`))
    await assertBroken('payment_event_pkey', buildEventInsert(`('evt_1', 'x', now(), '{}', null)`))
    await assertBroken(
      'payment_event_applied_at_check',
      buildEventInsert(`('evt_3', 'x', now(), null, null)`),
    )
    await assertBroken(
      'payment_event_applied_at_check',
      buildEventInsert(`('evt_3', 'x', now(), '{}', now())`),
    )
    await query('insert into payment_reconciliation (read_until) values (now())')
    await assertBroken(
      'payment_reconciliation_pkey',
      'insert into payment_reconciliation (read_until) values (now())',
    )
    await assertBroken(
      'payment_reconciliation_single_check',
      'insert into payment_reconciliation (single, read_until) values (false, now())',
    )
    await query(`insert into payment_key (missing_rights) values ('{}')`)
    await assertBroken('payment_key_pkey', `insert into payment_key (missing_rights) values ('{}')`)
    await assertBroken(
      'payment_key_single_check',
      `insert into payment_key (single, missing_rights) values (false, '{}')`,
    )
    const buildCountInsert = (reason: string): string =>
      `insert into payment_ignored_event (reason, events, last_type) values ('${reason}', 1, 'x')`
    await query(buildCountInsert('other_mode'))
    await assertBroken('payment_ignored_event_pkey', buildCountInsert('other_mode'))
    await assertBroken('payment_ignored_event_reason_check', buildCountInsert('type'))
  })

  test('are all covered, except generated identities', async () => {
    const names = await query(
      `select conname as name from pg_constraint where conrelid::regclass::text like 'payment_%' and contype <> 'n'`,
    )
    const numbers = /^payment_(customer|transaction|subscription|dispute|sum|subscription_count)_pkey$/
    assert.deepEqual(
      names
        .map(({ name }) => String(name))
        .filter((name) => !triedConstraints.has(name) && !numbers.test(name)),
      [],
    )
  })
})
