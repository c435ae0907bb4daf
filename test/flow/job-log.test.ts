import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '../service.ts'
import { until } from '../until.ts'
import { getSharedService } from './shared-service.ts'

/** The page of a job shows the worker's log lines about it. */

const { admin, worker, ...service } = await getSharedService()
const owner = await service.client()
const readDetails = async (client: Client, id: string) =>
  (await client.fetch(`/api/v1/jobs/${id}/details`)).json() as Promise<{
    job: { status: string }
    log: Record<string, unknown>[] | null
  }>

test('shows the log to admins, but not to the owner', async () => {
  const json = {
    task_name: 'io_simulation_task',
    queue_type: 'load_test',
    args: { operations: 100, duration_ms: 60_000 },
  }
  const { task_id: id } = (await (await owner.post('/api/v1/tasks/enqueue', json)).json()) as {
    task_id: string
  }
  const readStatus = async () => (await readDetails(owner, id)).job.status
  await until('the job runs', async () => (await readStatus()) === 'running')
  await owner.fetch(`/api/v1/jobs/${id}`, { method: 'DELETE' })
  const lines = await until('the log has a line', async () => {
    const { log } = await readDetails(admin, id)
    return log!.length > 0 && log!
  })
  const { at, ...line } = lines[0]!
  assert.deepEqual(
    [lines.length, line],
    [
      1,
      {
        attempt: 1,
        level: 'info',
        message: 'An attempt ended',
        data: { outcome: { kind: 'aborted', reason: 'cancelled' } },
      },
    ],
  )
  const written = worker.log.find((one) => one.includes('An attempt ended') && one.includes(id))!
  assert.deepEqual([JSON.parse(written).jobId, JSON.parse(written).time], [id, at])
  assert.equal((await readDetails(owner, id)).log, null)
})
