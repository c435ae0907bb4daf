import { after, describe, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import { listSealed, replaceSealed, SEALED_COLUMNS } from '../../sql/system/sealed.ts'
import { createTestDatabase } from '../database.ts'
import { assertWriteByIndex, fillOrganizations } from './plans-help.ts'

/** The rotation of a key finds its texts by an index, among 2000 of the current key in each column. */

const { url, query } = await createTestDatabase()
await fillOrganizations(query)
const [OLD, NEW] = ['aaaaaaaa', 'bbbbbbbb']
const TEXT = `(case n when 7 then '${OLD}' else '${NEW}' end) || '.AAAA'`
const ID = `('01980000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`
const FROM = 'from generate_series(1, 2000) n'
await query(`insert into account_totp (id, account_id, secret) select ${ID}, n, ${TEXT} ${FROM}`)
await query(
  `insert into webhook_endpoint (account_id, url, host, events, secret, previous_secret)
   select n, 'https://example.com/', 'example.com', '{job.done}', ${TEXT}, ${TEXT} ${FROM}`,
)
await query(
  `insert into worker_queue (name, endpoint_url, endpoint_concurrency, endpoint_secret)
   select 'q' || n, 'https://a.example', 1, ${TEXT} ${FROM}`,
)
await query(
  `insert into document (title, media_type, byte_size, sha256, sealed_password)
   select 't', 'a/b', 1, sha256(n::text::bytea), ${TEXT} ${FROM}`,
)
await query(
  `insert into job (id, name, queue, mailbox, payload, status, max_tries)
   select ${ID}, 'documents.extract', 'documents', 'm' || n,
     jsonb_build_object('documentId', n, 'sealedPassword', ${TEXT}), 'available', 3 ${FROM}`,
)
await query('analyze')
const client = await connect({ url, applicationName: 'plans' })
after(() => client.end())

describe('by index', () => {
  for (const [n, column] of SEALED_COLUMNS.entries()) {
    const { table, keyType } = column
    // It has a row for each lost key, so usually one.
    if (table === 'stored_key') continue
    const first = { uuid: '01980000-0000-7000-8000-000000000001', int8: '1', text: 'q1' }[keyType]
    test(`${n}: the texts of a key in ${table}`, async () => {
      await assertWriteByIndex(client, () => listSealed(column, OLD, null, 500), table)
      await assertWriteByIndex(client, () => listSealed(column, OLD, first, 500), table)
    })
    test(`${n}: replacing texts in ${table}`, () => {
      const change = { key: first, from: `${NEW}.AAAA`, to: `${NEW}.AAAA` }
      return assertWriteByIndex(client, () => replaceSealed(column, [change]), table)
    })
  }
})
