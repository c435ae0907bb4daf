import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noRows, sql, type Transaction } from '../../sql/db.ts'
import { waitForLock } from '../database.ts'
import { createCast } from './accounts-help.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { createWorkerHelp } from './worker-queues-help.ts'

/** The arguments of a schedule are checked without its lock, and again if they have changed meanwhile. */

const { api, db, query } = await startEdgeAndDatabase()
const { newcomer } = await createCast(api)
const { send, addQueue } = createWorkerHelp(api)
const SCHEDULES = '/api/v1/schedules'

async function createSchedule() {
  const user = await newcomer()
  const queue = await addQueue(user)
  const declaration = { args: { type: 'object', required: ['url'] } }
  await send(user, 'PUT', `/api/v1/worker-queues/${queue}/tasks/work`, declaration)
  const fields = { name: 's', cron: '0 0 * * *', queue_type: queue, task_name: 'work', args: { url: 'a' } }
  const { json } = await send(user, 'POST', SCHEDULES, fields)
  return { user, id: json.id as string, path: `${SCHEDULES}/${json.id}` }
}

const lock = (tx: Transaction, id: string) =>
  tx.run(sql.type(noRows)`select from schedule where id = ${id} for no key update`)
const setArgs = (tx: Transaction, id: string, args: object) =>
  tx.run(sql.type(noRows)`update schedule set args = ${JSON.stringify(args)}::jsonb where id = ${id}`)

/** Changes the arguments after the request has checked them. */
async function changeDuring<T>(id: string, args: object, request: () => Promise<T>): Promise<T> {
  const { answer } = await db.transaction(async (tx) => {
    await lock(tx, id)
    const answer = request()
    await waitForLock(query)
    await setArgs(tx, id, args)
    return { answer }
  })
  return answer
}

test('a run takes arguments that were changed after their check, and checks them', async () => {
  const { user, id, path } = await createSchedule()
  const run = () => send(user, 'POST', `${path}/run`)
  const taken = await changeDuring(id, { url: 'b' }, run)
  assert.equal(taken.status, 202, taken.text)
  const jobs = () =>
    query('select payload from job where owner_id = $1 and name like $2', [user.id, '%/work'])
  assert.deepEqual(await jobs(), [{ payload: { url: 'b' } }])
  const refused = await changeDuring(id, {}, run)
  assert.deepEqual([refused.status, refused.json.errors[0].loc], [422, ['body', 'args', 'url']])
  assert.equal((await jobs()).length, 1)
})

test('a change of other fields checks the arguments that it keeps', async () => {
  const { user, id, path } = await createSchedule()
  const refused = await changeDuring(id, {}, () => send(user, 'PATCH', path, { name: 'new' }))
  assert.deepEqual([refused.status, refused.json.errors[0].loc], [422, ['body', 'args', 'url']])
  const changed = await changeDuring(id, { url: 'b' }, () =>
    send(user, 'PATCH', path, { args: { url: 'c' } }),
  )
  assert.deepEqual([changed.status, changed.json.name, changed.json.args], [200, 's', { url: 'c' }])
})

test('a repeated run gets the stored answer, although the schedule no longer exists', async () => {
  const { user, path } = await createSchedule()
  const run = () => api.post(`${path}/run`, { token: user.token, headers: { 'idempotency-key': 'one' } })
  const first = await run()
  assert.equal(first.status, 202, first.text)
  assert.equal((await send(user, 'DELETE', path)).status, 204)
  assert.deepEqual((await run()).json, first.json)
})
