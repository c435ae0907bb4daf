import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startEdge } from './harness.ts'
import { assertRefused, type Person } from './orgs-help.ts'
import { createPayments } from './payments-rows.ts'

const { admin, ann, bob, call, env, everything, get, query, url } = await createPayments()
const restricted = await startEdge(url, { env: { ...env, PAYMENT_REFUNDS: 'admin' } })

type Row = Record<string, unknown>

/** Reads all pages of a list as an admin, two rows at a time. */
async function readPages(list: string, name: string): Promise<Row[]> {
  const rows: Row[] = []
  for (let cursor = ''; cursor !== null; ) {
    const page = await get(admin, `/admin/${list}${list.includes('?') ? '&' : '?'}page_size=2${cursor}`)
    rows.push(...page[name])
    cursor = page.next && `&cursor=${page.next}`
  }
  return rows
}

const omitAccount = ({ account_id: _, ...row }: Row): Row => row

describe('the payments of all accounts', () => {
  for (const name of ['transactions', 'subscriptions', 'disputes'])
    test(`include the ${name} of each account and of guests, with the account`, async () => {
      const rows = await readPages(name, name)
      assert.deepEqual(rows.map(omitAccount), (await everything(`/${name}`))[name])
      for (const who of [ann, bob]) {
        const own = rows.filter(({ account_id }) => account_id === who.id)
        assert.deepEqual(own.map(omitAccount), (await get(who, `/${name}`))[name])
        assert.deepEqual(await readPages(`${name}?account_id=${who.id}`, name), own)
      }
      const known = new Set<unknown>([ann.id, bob.id, ...(name === 'subscriptions' ? [] : [null])])
      assert.deepEqual(new Set(rows.map(({ account_id }) => account_id)), known)
      assert.equal((await get(admin, `/admin/${name}?account_id=2147483647`)).total, 0)
    })

  test('have the filters and the order of the lists of callers', async () => {
    const read = async (search: string) => (await get(admin, `/admin/transactions?${search}`)).transactions
    assert.deepEqual(
      (await read('sort=-amount&status=succeeded')).map(({ amount }: Row) => amount),
      [9000, 1000, 700, 500, 50],
    )
    assert.equal((await get(admin, '/admin/disputes?status=open')).total, 4)
    assert.equal((await get(admin, `/admin/subscriptions?status=trialing&account_id=${ann.id}`)).total, 0)
    for (const path of ['transactions?status=open', 'transactions?account_id=x', 'disputes?status=closed'])
      assertRefused(await call(admin, 'GET', `/admin/${path}`), 422)
  })

  test('are read one by one', async () => {
    for (const [name, detail] of [
      ['transactions', 'Transaction not found'],
      ['disputes', 'Dispute not found'],
    ] as const) {
      for (const row of await readPages(name, name))
        assert.deepEqual(await get(admin, `/admin/${name}/${row.id}`), row)
      assertRefused(await call(admin, 'GET', `/admin/${name}/2147483647`), 404, detail)
    }
  })

  test('are hidden from other accounts, and no part of the lists of an admin', async () => {
    for (const path of ['transactions', 'transactions/1', 'subscriptions', 'disputes', 'disputes/1'])
      assertRefused(await call(ann, 'GET', `/admin/${path}`), 403, 'This requires the role admin')
    assert.equal((await get(admin, '/transactions')).total, 0)
  })
})

describe('a refund', () => {
  const findPayment = async (name: string): Promise<number> => {
    const [row] = await query(
      'select transaction_id::int as id from payment_reference where provider_id = $1',
      [`pi_${name}`],
    )
    return row!.id as number
  }
  const request = { json: { amount: 1 }, headers: { prefer: 'respond-async' } }
  const ask = (who: Person, path: string) =>
    restricted.post(`/api/v1/payment/${path}`, { ...request, token: who.token })

  test('by an admin is possible for the payment of any account and of a guest', async () => {
    for (const name of ['a1', 'guest']) {
      const id = await findPayment(name)
      const answer = await call(admin, 'POST', `/admin/refund/${id}`, request.json, request.headers)
      assert.equal(answer.status, 202, answer.text)
      const [row] = await query('select reserved::int from payment_transaction where id = $1', [id])
      assert.equal(row!.reserved, 1)
    }
    assertRefused(await call(admin, 'POST', '/admin/refund/2147483647'), 404, 'Transaction not found')
    assertRefused(await call(admin, 'POST', `/refund/${await findPayment('a1')}`), 404)
    assertRefused(await call(ann, 'POST', `/admin/refund/${await findPayment('a1')}`), 403)
  })

  test('by its owner is refused with PAYMENT_REFUNDS=admin', async () => {
    const id = await findPayment('b1')
    assertRefused(await ask(bob, `refund/${id}`), 403, 'This requires the role admin')
    assertRefused(await ask(bob, 'refund/2147483647'), 403, 'This requires the role admin')
    assertRefused(await ask(admin, `refund/${id}`), 404, 'Transaction not found')
    const answer = await ask(admin, `admin/refund/${id}`)
    assert.equal(answer.status, 202, answer.text)
  })
})
