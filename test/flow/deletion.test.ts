import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import { startEdgeAndDatabase } from '../edge/harness.ts'
import { Client, startProcess } from '../service.ts'
import { SHORT_LEASE } from './crash.ts'

/** Workers delete an account with thousands of documents. One worker is killed meanwhile. */

const DOCUMENTS = 2000

const { api, url, query } = await startEdgeAndDatabase()
const admin = await api.register('admin@example.com')
const lockHolder = await connect({ url, applicationName: 'holding' })
after(() => lockHolder.end())
const startWorker = () =>
  startProcess('worker', url, { WORKER_QUEUES: 'accounts', WORKER_THREADS: '1', ...SHORT_LEASE })
const countRows = async (table: string): Promise<number> =>
  (await query(`select count(*)::int as n from ${table}`))[0]!.n as number

test('an account is gone immediately, its progress is visible, and another worker completes the deletion', async () => {
  const { id, token } = await api.register('big@example.com')
  await query(
    `with made as (insert into document (owner_id, title, media_type, byte_size, sha256)
       select $1, 'T' || n, 'text/plain', 1, sha256(n::text::bytea) from generate_series(1, $2) n returning id)
     insert into document_page (document_id, page_number, status, method, text, job_id)
     select id, n, 'read', 'text_layer', 'Text', gen_random_uuid() from made, generate_series(1, 2) n`,
    [id, DOCUMENTS],
  )
  assert.equal((await api.call('DELETE', `/api/v1/auth/users/${id}`, { token: admin.token })).status, 204)
  assert.equal((await api.get('/api/v1/documents', { token })).status, 401)
  assert.equal(await countRows('document'), DOCUMENTS)
  // This lock blocks the deletion of the account's row, which comes last. So the first worker cannot finish before it
  // is killed.
  await lockHolder.query('begin')
  await lockHolder.query('select from account where id = $1 for key share', [id])
  const first = await startWorker()
  const [job] = await query(`select id from job where name = 'accounts.purge'`)
  const client = new Client(api.port)
  client.token = admin.token
  const stream = await client.stream(`/api/v1/jobs/${job!.id}/events`)
  await stream.until('some documents are deleted', (frames) =>
    frames.some(({ data }) => data.label === `Account ${id}: documents`),
  )
  await first.kill()
  await lockHolder.query('commit')
  await startWorker()
  const { result, status } = (await stream.waitForEnd()).at(-1)!.data as {
    status: string
    result: { accounts: number }
  }
  assert.deepEqual([status, result.accounts], ['done', 1])
  assert.deepEqual([await countRows('document'), await countRows('document_page')], [0, 0])
  assert.deepEqual(await query('select 1 from account where id = $1', [id]), [])
})
