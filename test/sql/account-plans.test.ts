import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { checkDeletionDue, findDueAccounts } from '../../sql/accounts/deletions.ts'
import {
  beginEmailChange,
  cancelEmailChange,
  confirmEmailChange,
  deleteExpiredEmailChanges,
  findPendingEmailChange,
  readEmailChange,
  refuseEmailChange,
} from '../../sql/accounts/email-changes.ts'
import { ACCOUNT_ORDERS, readAccounts } from '../../sql/accounts/lists.ts'
import { connect } from '../../sql/connections/driver.ts'
import type { Query } from '../../sql/db.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { assertListByIndex, assertReadByIndex, assertWriteByIndex, planRead } from './plans-help.ts'

/**
 * Account lists return the right rows for every combination of filters and orders. With 10,000 accounts, each list uses
 * an index.
 */

const { query, url } = await createTestDatabase()
const addAccounts = (which: string) =>
  query(
    `insert into account (email, password_hash, full_name, role, is_active, last_login, created_at)
     select 'person-' || n || case when n % 1000 = 7 then '.müller' else '' end || '@example.com', 'x',
       case when n % 3 = 0 then 'Zoë ' || to_char(n * 7919 % 10000, 'FM0000') when n % 3 = 1 then 'Ann Lee' end,
       case when n % 1000 = 0 then 'moderator' when n % 1000 = 1 then 'admin' else 'user' end, n % 50 > 0,
       case when n % 4 > 0 then timestamptz '2026-02-01' + n / 3 * interval '1 minute' end,
       timestamptz '2026-01-01' + n / 3 * interval '1 minute'
     from generate_series(1, 10000) n where ${which}`,
  )
const SUBSET_CONDITION = 'n % 1000 < 180'
await addAccounts(SUBSET_CONDITION)
await query(
  `insert into account (email, password_hash, is_active, deleted_at) select null, '', false, now() from generate_series(1, 100)`,
)
await query(
  `create table plain as select *, lower(unaccent(concat_ws(E'\\n', email, full_name))) as text from account where deleted_at is null`,
)
await vacuumAnalyze(query)
const client = await connect({ url, applicationName: 'plans' })
const reader = createReader({ url, applicationName: 'lists' })
after(() => Promise.all([client.end(), reader.close()]))

const ORDERS = Object.keys(ACCOUNT_ORDERS) as (keyof typeof ACCOUNT_ORDERS)[]
const DIRECTIONS = ['asc', 'desc'] as const
const ANY_TIME = [null, null] as const
// This range holds 900 accounts, 180 of them with rare values.
const TIME_RANGE = ['2026-01-02T00:00:00Z', '2026-01-02T05:00:00Z'] as const

const FILTERS = [null, 'user', 'moderator'].flatMap((role) =>
  [null, false].flatMap((active) => [ANY_TIME, TIME_RANGE].map(([from, to]) => ({ role, active, from, to }))),
)
// Page size of the compared lists.
const PAGE_SIZE = 30
const SORT_KEYS = { created_at: [], email: ['email'], last_login: ["coalesce(last_login, 'epoch')"] }

describe('lists with each combination of role, state, search, time and order', () => {
  for (const search of [null, 'ZOE 0', 'müll', 'mull', '7@exam', 'no_body', '100%', 'back\\slash', '\\_@'])
    for (const order of ORDERS)
      for (const way of DIRECTIONS)
        test(`${search}, ${order}, ${way}`, async () => {
          const by = [...SORT_KEYS[order], 'created_at', 'id'].map((key) => `${key} ${way}`)
          const matching = await query(
            `select id, role, is_active, created_at from plain
             where $1::text is null or position(lower(unaccent($1)) in text) > 0 order by ${by}`,
            [search],
          )
          for (const { role, active, from, to } of FILTERS) {
            const values = [role, active, search, null, from!, to!, null, 0, PAGE_SIZE] as const
            const found = await reader.text(readAccounts[order][way], values)
            const expected = matching.filter(
              (account) =>
                (role === null || account.role === role) &&
                (active === null || account.is_active === active) &&
                (from === null || (account.created_at as Date) >= new Date(from)) &&
                (to === null || (account.created_at as Date) < new Date(to)),
            )
            assert.deepEqual(
              JSON.parse(found!.split('\n')[1]!).map((account: { id: number }) => account.id),
              expected.slice(0, PAGE_SIZE).map(({ id }) => id),
            )
          }
        })
})

const filteredLists = [
  ['all', null, null, null, null, ...ANY_TIME],
  ['of a role', 'moderator', null, null, null, ...ANY_TIME],
  ['inactive accounts', null, false, null, null, ...ANY_TIME],
  ['active accounts', null, true, null, null, ...ANY_TIME],
  ['inactive accounts of a role', 'user', false, null, null, ...ANY_TIME],
  ['with a name', null, null, 'zoe 2', null, ...ANY_TIME],
  ['with an address', null, null, 'person-12345@', null, ...ANY_TIME],
  ['with an internationalized domain', null, null, '@bücher.example', '@xn--bcher-kva.example', ...ANY_TIME],
  ['with a text that no account has', null, null, 'nobody has this', null, ...ANY_TIME],
  ['with a text that many accounts have', null, null, 'example', null, ...ANY_TIME],
  ['of a role, with a name', 'admin', true, 'ann', null, ...ANY_TIME],
] as const
const reads = ORDERS.flatMap((order) =>
  DIRECTIONS.flatMap((way) =>
    filteredLists.map(([what, ...filters]) =>
      planRead(`${what}, by ${order}, ${way}`, readAccounts[order][way], ...filters, null, 0, 20),
    ),
  ),
)
const readsOfTimeRange = DIRECTIONS.map((way) =>
  planRead(
    `of a time range, ${way}`,
    readAccounts.created_at[way],
    null,
    null,
    null,
    null,
    ...TIME_RANGE,
    null,
    0,
    20,
  ),
)
describe('with 10,000 accounts', () => {
  before(async () => {
    await addAccounts(`not (${SUBSET_CONDITION})`)
    await query(
      `update account set deletion_at = now() + (id - 20) * interval '1 hour' where id % 1000 < 3 and role <> 'admin' and deleted_at is null`,
    )
    await query(
      `insert into email_change (id, account_id, email, old_digest, new_digest, expires_at)
       select gen_random_uuid(), id, 'next-' || id || '@example.com', sha256(('old' || id)::bytea), sha256(('new' || id)::bytea),
         now() + (id - 20) * interval '1 min'
       from account where id <= 4000 and deleted_at is null`,
    )
    await vacuumAnalyze(query)
  })

  // With the wrong index, a list reads up to 10,000 buffers.
  for (const [what, statement, ...values] of [...reads, ...readsOfTimeRange])
    test(what, () => assertListByIndex(client, statement, values, 300))

  describe('writes by index', () => {
    let n = 100
    const readPendingChange = async () =>
      (await query('select id from email_change where account_id = $1', [++n]))[0]!.id as string
    const digest = () => createHash('sha256').update(`new${++n}`).digest()
    const change = () => ({
      ...{ id: randomUUID(), accountId: ++n, email: 'b@example.com', sessionId: null, lifetimeSeconds: 60 },
      digests: { old: randomBytes(32), new: randomBytes(32) },
    })
    const writes: readonly [string, () => Promise<Query<unknown>> | Query<unknown>][] = [
      ['finding accounts to delete', () => findDueAccounts(0, 1000, 'x:')],
      ['checking whether an account is due', () => checkDeletionDue(++n)],
      ['beginning a change of address', () => beginEmailChange(change())],
      [
        'reading a pending change for its mail',
        async () => findPendingEmailChange(await readPendingChange(), 'new'),
      ],
      ['confirming a change', () => confirmEmailChange(digest())],
      ['refusing a change', () => refuseEmailChange(digest())],
      ['cancelling a change', () => cancelEmailChange(++n)],
      ['deleting expired changes', () => deleteExpiredEmailChanges(5)],
    ]
    // All tables except accounts and changes of address are empty here.
    for (const [what, make] of writes)
      test(what, async () => {
        await assertWriteByIndex(client, make, 'account', 'email_change')
      })
    test('the pending change of address', () =>
      assertReadByIndex(client, readEmailChange, [500], ['force_generic_plan']))
  })
})
