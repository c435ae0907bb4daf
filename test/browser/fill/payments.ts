import type { Fill } from './fill.ts'

/** Returns the SQL of a fact, which is a value with its stamp. */
const fact = (value: string) => `jsonb_build_array(lpad('1', 16, '0'), ${value})`
const seconds = (at: string) => fact(`floor(extract(epoch from ${at}))::bigint`)
const customer = `(select id from payment_customer where provider_customer_id = case when n % 9 = 0 then 'cus_filled_guest' else 'cus_filled' end)`

const WEBHOOK_TRIGGERS = {
  payment_transaction: ['webhook_transaction_made', 'webhook_transaction_changed'],
  payment_subscription: ['webhook_subscription_made'],
  payment_dispute: ['webhook_dispute_made'],
}

/** Transactions, subscriptions and disputes of the account and of guests, 10,000 of each. */
export const fill: Fill = async ({ query, accountId }) => {
  // Rows of other areas may have thousands of webhook endpoints, each of which would get every payment.
  const setTriggers = async (state: 'enable' | 'disable') => {
    for (const [table, names] of Object.entries(WEBHOOK_TRIGGERS))
      for (const name of names) await query(`alter table ${table} ${state} trigger ${name}`)
  }
  await setTriggers('disable')
  await query(
    `insert into payment_customer (user_id, provider_customer_id) values ($1, 'cus_filled'), (null, 'cus_filled_guest')
     on conflict (user_id) do update set provider_customer_id = 'cus_filled'`,
    [accountId],
  )
  await query(
    `insert into payment_transaction (customer_id, facts)
     select ${customer}, jsonb_build_object(
       'money', ${fact(`jsonb_build_object('amount', case when n % 50 = 0 then 99999999999 else 100 + n * 37 % 20000 end, 'currency', (array['usd', 'eur', 'jpy', 'kwd'])[1 + n % 4])`)},
       'created', ${seconds(`now() - n * interval '50 minutes'`)}, 'outcome', ${fact(`(array['succeeded', 'succeeded', 'succeeded', 'failed', 'pending', 'canceled'])[1 + n / 2 % 6]`)},
       'description', ${fact(`case when n % 50 = 0 then repeat('Bestellung', 40) when n % 50 = 1 then '' else 'Order ' || n end`)},
       'payment_intent', ${fact(`'pi_filled_' || n`)})
       || case when n % 5 = 0 then jsonb_build_object('refunded', ${fact(`jsonb_build_object('amount', case when n % 10 = 0 then 100 + n * 37 % 20000 else 50 end)`)}) else '{}' end
       || case when n % 7 = 0 then jsonb_build_object('subscription', ${fact(`'sub_filled_' || n`)}) else '{}' end
     from generate_series(1, 10000) n`,
  )
  await query(
    `insert into payment_transaction (customer_id, charge_id, facts)
     select customer_id, id, jsonb_build_object('money', ${fact(`jsonb_build_object('amount', 50, 'currency', currency)`)}, 'created', ${seconds('created_at')},
       'outcome', ${fact(`'succeeded'::text`)}, 'refund', ${fact(`'re_filled_' || id`)})
     from payment_transaction where provider_payment_intent_id like 'pi_filled_%' and status = 'partially_refunded'`,
  )
  await query(
    `insert into payment_subscription (customer_id, provider_subscription_id, facts)
     select ${customer}, 'sub_filled_' || n, jsonb_build_object('status', ${fact(`(array['active', 'past_due', 'canceled', 'incomplete', 'trialing', 'unpaid'])[1 + n % 6]`)},
       'plan_name', ${fact(`case when n % 50 = 0 then repeat('Jahresabonnement', 20) when n % 50 = 1 then '' else 'Plan ' || n end`)},
       'period_start', ${seconds(`now() - interval '5 days'`)}, 'period_end', ${seconds(`now() + interval '25 days'`)}, 'cancel_at_period_end', ${fact('n % 4 = 0')})
     from generate_series(1, 10000) n`,
  )
  await query(
    `insert into payment_dispute (customer_id, transaction_id, provider_dispute_id, facts)
     select customer_id, id, 'du_filled_' || id, jsonb_build_object(
       'state', ${fact(`jsonb_build_object('status', (array['warning_issued', 'warning_closed', 'needs_response', 'under_review', 'won', 'lost', 'charge_refunded'])[1 + id % 7],
         'event_type', 'charge.dispute.updated', 'at', floor(extract(epoch from created_at)) + 60)`)},
       'reason', ${fact(`case when id % 50 = 0 then repeat('product_not_received_', 20) else 'fraudulent' end`)},
       'money', ${fact(`jsonb_build_object('amount', amount, 'currency', currency)`)}, 'due_by', ${seconds(`created_at + interval '10 days'`)}, 'created', ${seconds('created_at')})
     from payment_transaction where provider_payment_intent_id like 'pi_filled_%'`,
  )
  await setTriggers('enable')
  return {}
}
