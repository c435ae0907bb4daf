import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { fromBufferPromise } from 'yauzl'
import { connect } from '../../sql/connections/driver.ts'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { Client, startProcess } from '../service.ts'
import { until } from '../until.ts'

/** Workers pack all data of an account for download. If a worker is killed during an export, another completes it. */

const { url, query } = await createTestDatabase()
const env = { LEASE_SECONDS: '1', WORKER_QUEUES: 'accounts', WORKER_THREADS: '1', EMAIL_SMTP_URL: 'outbox:' }
const edge = await startEdge(url, { env })
const lockHolder = await connect({ url, applicationName: 'holding' })
after(() => lockHolder.end())
const client = new Client(edge.port)
await client.register('keeper@example.com')
const bytes = Buffer.from('The bytes of a document. '.repeat(20_000))
assert.equal((await client.upload(bytes, 'letter.txt')).status, 201)

async function readArchive(archive: Buffer): Promise<Map<string, string>> {
  const zip = await fromBufferPromise(archive, { lazyEntries: true })
  const files = new Map<string, string>()
  for await (const entry of zip.eachEntry()) {
    const chunks: Buffer[] = []
    for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer)
    files.set(entry.fileName, Buffer.concat(chunks).toString())
  }
  return files
}

/** Locks a table and starts an export, which blocks until `lockHolder` commits. */
async function startBlockedExport() {
  await lockHolder.query('begin')
  await lockHolder.query('lock table ai_usage in access exclusive mode')
  const { job_id } = (await (await client.post('/api/v1/auth/me/export?background=true')).json()) as {
    job_id: string
  }
  const stream = await client.stream(`/api/v1/jobs/${job_id}/events`)
  await stream.until('the export is blocked', (frames) =>
    frames.some(({ data }) => data.label === 'Exporting usage.ndjson'),
  )
  return { job_id, stream }
}

const firstWorker = await startProcess('worker', url, env)

test('a running export that is cancelled leaves nothing behind', async () => {
  const { job_id, stream } = await startBlockedExport()
  await client.fetch(`/api/v1/jobs/${job_id}`, { method: 'DELETE' })
  // The worker checks for cancellations at each lease renewal. Wait for the third renewal, because the first may have
  // begun before the cancellation, and the third proves that the second has finished. A thread that does not stop
  // within 2 s would be killed and leave its bytes behind.
  const leases = new Set<unknown>()
  await until('the lease is renewed three times', async () => {
    const [lease] = await query('select max(expires_at)::text as at from worker_lease')
    return leases.add(lease!.at).size > 3
  })
  await lockHolder.query('commit')
  assert.equal(((await stream.waitForEnd()).at(-1)!.data as { status: string }).status, 'cancelled')
  assert.deepEqual(await query('select 1 from account_export where id = $1', [job_id]), [])
  await until('the bytes of the export are discarded', async () => {
    const [row] = await query('select count(*)::int as n from blob')
    return row!.n === 1
  })
})

test('after a worker is killed during an export, another one repeats it once', async () => {
  const { job_id, stream } = await startBlockedExport()
  const again = (await (await client.post('/api/v1/auth/me/export?background=true')).json()) as object
  assert.deepEqual(again, { job_id }, 'another request joins it')
  assert.deepEqual(await query('select 1 from account_export'), [])
  await firstWorker.kill()
  await lockHolder.query('commit')
  await startProcess('worker', url, env)
  const last = (await stream.waitForEnd()).at(-1)!.data as { status: string; result: object }
  const [row] = await query('select id, byte_size::int from account_export')
  assert.deepEqual([last.status, last.result], ['done', { export_id: job_id, byte_size: row!.byte_size }])
  assert.equal(row!.id, job_id)

  const listed = (await (await client.fetch('/api/v1/auth/me/export')).json()) as { id: string }[]
  assert.deepEqual(
    listed.map(({ id }) => id),
    [job_id],
  )
  const answer = await client.fetch(`/api/v1/auth/me/export/${job_id}`)
  assert.equal(answer.status, 200)
  const files = await readArchive(Buffer.from(await answer.arrayBuffer()))
  assert.equal(JSON.parse(files.get('account.json')!).account.email, 'keeper@example.com')
  const [name] = [...files.keys()].filter((path) => path.startsWith('documents/'))
  assert.match(name!, /^documents\/\d+\/letter\.txt$/)
  assert.equal(files.get(name!), bytes.toString())
  const sealed = await query('select count(*)::int as n from blob where sha256 is not null')
  assert.deepEqual(sealed, [{ n: 2 }], 'what the first one left is no blob, and is collected')
})
