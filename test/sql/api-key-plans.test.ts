import { after, describe, test } from 'node:test'
import { lockAccount, readAccountState } from '../../sql/accounts/accounts.ts'
import { recordSessionUse } from '../../sql/accounts/sessions.ts'
import { connect } from '../../sql/connections/driver.ts'
import type { Query } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import {
  deleteApiKey,
  deleteExpiredApiKeys,
  findOwnedKey,
  insertApiKey,
  readApiKey,
  readApiKeys,
  readOrganizationKeys,
  recordKeyUse,
  reserveRequests,
} from '../../sql/keys/api-keys.ts'
import { deleteMember, markOrganizationDeleted } from '../../sql/orgs/orgs.ts'
import { digestOf } from '../../tasks/accounts/tokens.ts'
import { createTestDatabase } from '../database.ts'
import { assertWriteByIndex, fillOrganizations, planRead, testReads } from './plans-help.ts'

/** Queries of API keys and access checks use an index, with 2000 accounts and 5000 keys. */

const { url, query } = await createTestDatabase()
await fillOrganizations(query)
await query(
  `insert into session (id, account_id) select gen_random_uuid(), n from generate_series(1, 2000) n`,
)
await query(
  `insert into account_totp (secret, id, account_id) select 'aaaaaaaa.AAAA', gen_random_uuid(), n from generate_series(1, 2000) n`,
)
await query(
  `insert into api_key (id, account_id, organization_id, name, digest, hint, scopes, expires_at)
   select ('01980000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 1 + n % 2000,
     case when n % 2 = 0 then 1 + n % 2000 / 5 end, 'n', sha256(n::text::bytea), 'hint', '{jobs:read}',
     case when n % 3 = 0 then now() + (n - 50) * interval '1 day' end
   from generate_series(1, 5000) n`,
)
await query(
  `insert into api_key_allowance (key_id, began_at, taken, granted) select id, now(), 1, 1 from api_key`,
)
await query('analyze')

const client = await connect({ url, applicationName: 'plans' })
after(() => client.end())

const reads = [
  planRead('a caller', readAccountState, 5),
  planRead('a key', readApiKey, '00'.repeat(32)),
  planRead('the keys of an account', readApiKeys, 5, null, 0, 100),
  planRead('the keys of an organization', readOrganizationKeys, 5, 21, null, 0, 100),
] as const

describe('reads by index', () => {
  testReads(client, reads)
})

let count = 500
let organization = 100
const nextKeyId = (): string => {
  count += 20
  return `01980000-0000-7000-8000-${count.toString(16).padStart(12, '0')}`
}
const insertNewKey = (): Query<unknown> => {
  const id = uuidv7()
  const more = { name: 'n', digest: digestOf(id), hint: id.slice(-4), scopes: ['*:write'], expiresAt: null }
  return insertApiKey({ id, accountId: 11, organizationId: 3, ...more })
}

const writes: Readonly<Record<string, () => Query<unknown>>> = {
  'adding a key': insertNewKey,
  'the owners of a key': () => findOwnedKey(nextKeyId()),
  'deleting a key': () => deleteApiKey(nextKeyId()),
  'recording the last use': () => recordKeyUse([nextKeyId(), nextKeyId()]),
  'reserving requests': () => reserveRequests(nextKeyId(), 1000, 60, 10),
  'deleting expired keys': () => deleteExpiredApiKeys(2),
  'the end of a membership': () => deleteMember(++organization, organization * 5 - 3),
  'the end of an organization': () => markOrganizationDeleted(++organization),
}

describe('writes by index', () => {
  test('locking an account', () => assertWriteByIndex(client, () => lockAccount(7), 'account'))
  for (const [what, make] of Object.entries(writes))
    test(what, () => assertWriteByIndex(client, make, 'api_key'))
  test('recording the last use of sessions', async () => {
    const ids = (await query('select id from session order by id limit 20')).map(({ id }) => id as string)
    const used = () => ids.splice(0, 2).map((id) => ({ id, address: '10.0.0.1', place: null }))
    await assertWriteByIndex(client, () => recordSessionUse(used()), 'session')
  })
})
