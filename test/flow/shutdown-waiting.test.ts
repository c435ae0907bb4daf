import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testDatabase } from '../database.ts'
import { Client, startProcess } from '../service.ts'
import { until } from '../until.ts'
import * as crash from './crash.ts'

const { url, query } = await testDatabase()

test('an edge that is told to stop answers who waits for a job that does not end in time', async () => {
  const leaving = await startProcess('edge', url)
  const client = new Client(leaving.ready.port!)
  await client.register('reader@example.com')
  // No worker runs: the job goes on waiting.
  const id = await crash.uploadText(client, 2, 'waits for a worker')
  const answer = client.post(`/api/v1/documents/${id}/extract`)
  const jobId = await until(
    'the job is there',
    async () => (await query(`select id from job where name = 'documents.extract'`))[0]?.id as string,
  )
  leaving.process.kill('SIGTERM')
  const response = await answer
  assert.deepEqual([response.status, await response.json()], [202, { job_id: jobId }])
  await until('the edge ends', () => leaving.process.exitCode !== null)
  assert.equal(leaving.process.exitCode, 0)
})
