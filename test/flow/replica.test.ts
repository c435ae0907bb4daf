import assert from 'node:assert/strict'
import { test } from 'node:test'
import { areas } from '../../edge/routes/index.ts'
import { until } from '../until.ts'
import { countReads, createReplicaWorld } from './replicas.ts'

/** Reads that may lag use the standby, and say how old they are. All others use the primary. */

const { cluster, edges, pause, resume, waitForState } = await createReplicaWorld()
const [edge] = edges
const { token } = await edge.register('writer@example.com')
await waitForState('used')

const enqueueTask = async () => {
  const task = { task_name: 'io_simulation_task', queue_type: 'load_test', args: { duration_ms: 1 } }
  const answer = await edge.post('/api/v1/tasks/enqueue', { token, json: task })
  assert.equal(answer.status, 202, answer.text)
  return answer.json.task_id as string
}
const readDepth = async () => {
  const { json, headers } = await edge.get('/api/v1/tasks', { token })
  const [queue] = json.queues.filter((one: { queue_type: string }) => one.queue_type === 'load_test')
  return { depth: queue.depth as number, age: headers.age }
}
const listJobs = async () =>
  (await edge.get('/api/v1/jobs', { token })).json.map((job: { job_id: string }) => job.job_id)

test('reads what may lag from the standby, with its age, and everything else from the primary', async () => {
  const reads = areas.flatMap(({ prefix, routes }) =>
    routes.flatMap(({ path, reads, mayLag, stream }) =>
      reads === undefined || stream || path.includes(':') ? [] : [[prefix + path, mayLag === true] as const],
    ),
  )
  assert.ok(reads.filter(([, mayLag]) => mayLag).length > 10)
  for (const [path, mayLag] of reads) {
    const { answer, replica, primary } = await countReads(edge, () => edge.get(path, { token }))
    assert.ok([200, 403, 422].includes(answer.status), `${path}: ${answer.status} ${answer.text}`)
    if (answer.status !== 200) continue
    assert.deepEqual([path, replica > 0, primary], [path, mayLag, 0])
    if (mayLag) assert.match(answer.headers.age as string, /^\d{1,2}$/)
    else assert.equal(answer.headers.age, undefined, path)
  }
})

test('callers see their own writes in lists, while statistics lag', async () => {
  const first = await enqueueTask()
  await until('the standby counts the task', async () => (await readDepth()).depth === 1)
  await pause()
  const second = await enqueueTask()
  const listed = await listJobs()
  assert.ok(listed.includes(first) && listed.includes(second))
  const { depth, age } = await readDepth()
  assert.deepEqual([depth, typeof age], [1, 'string'])
  await resume()
  await until('the standby counts both', async () => (await readDepth()).depth === 2)
  const rows = await cluster.standby.query(
    `select from pg_stat_activity where application_name = 'millrace-edge-replica' and query like '%job_count%'`,
  )
  assert.ok(rows.length >= 1)
})
