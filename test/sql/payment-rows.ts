import type { TestDatabase } from '../database.ts'

/**
 * Reads all payment rows whose provider ids contain `name`. Equal lifecycles yield equal results. Rows refer to each
 * other by provider ids, because the service's ids depend on the order of inserts. The name itself is removed.
 */
export async function readPaymentRows(
  { query }: Pick<TestDatabase, 'query'>,
  name: string,
): Promise<unknown> {
  const like = `%\\_${name}%`
  const rows = await query(
    `select 'customer' as kind, c.provider_customer_id as key, null::text as parent, to_jsonb(c) - 'id' - 'created_at' as row
      from payment_customer c where c.provider_customer_id like $1
    union all
    select 'transaction', t.provider_transaction_id, (select p.provider_transaction_id from payment_transaction p where p.id = t.charge_id),
      to_jsonb(t) - '{id,customer_id,charge_id,job_id}'::text[] || jsonb_build_object(
        'customer', (select c.provider_customer_id from payment_customer c where c.id = t.customer_id))
      from payment_transaction t where t.provider_transaction_id like $1
    union all
    select 'reference', r.provider_id, (select t.provider_transaction_id from payment_transaction t where t.id = r.transaction_id), null
      from payment_reference r where r.provider_id like $1
    union all
    select 'subscription', s.provider_subscription_id, null, to_jsonb(s) - '{id,customer_id}'::text[] || jsonb_build_object(
        'customer', (select c.provider_customer_id from payment_customer c where c.id = s.customer_id))
      from payment_subscription s where s.provider_subscription_id like $1
    union all
    select 'dispute', d.provider_dispute_id, (select t.provider_transaction_id from payment_transaction t where t.id = d.transaction_id),
      to_jsonb(d) - '{id,transaction_id,customer_id}'::text[] || jsonb_build_object(
        'customer', (select c.provider_customer_id from payment_customer c where c.id = d.customer_id))
      from payment_dispute d where d.provider_dispute_id like $1
    order by 1, 2`,
    [like],
  )
  return JSON.parse(JSON.stringify(rows).replaceAll(`_${name}`, '_NAME').replaceAll(` ${name}`, ' NAME'))
}
