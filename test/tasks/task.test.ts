import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { isUuid } from '../../sql/ids.ts'
import type { TaskContext } from '../../tasks/context.ts'
import { createTaskFinder, loadTasks, queuesOf, tasks } from '../../tasks/index.ts'
import { defineTask, type EnqueueOptions, enqueue, enqueueMany, loadLazily } from '../../tasks/task.ts'
import { createTestDatabase } from '../database.ts'
import { createJobSettings } from '../job-settings.ts'
import { createLedgerHelp } from '../sql/ledger-help.ts'

const database = await createTestDatabase()
const { db, query } = database
const ledger = createLedgerHelp(database)

const Payload = z.strictObject({ id: z.int(), note: z.string().default('none') })
const plainTask = defineTask({
  name: 'test.plain',
  queue: 'test',
  pool: 'cpu',
  payload: Payload,
  result: z.string(),
  run: (_ctx, { note }) => Promise.resolve(note),
})
const actorTask = defineTask({
  ...plainTask,
  name: 'test.acting',
  actor: ({ id }) => `thing:${id}`,
  whenBusy: 'join',
  tries: 7,
})
const waitingTask = defineTask({ ...plainTask, name: 'test.waiting', actor: ({ id }) => `other:${id}` })

const options: EnqueueOptions = { ownerId: null, settings: createJobSettings(3) }
const readRow = async (id: string) => (await query('select * from job where id = $1', [id]))[0]!

describe('enqueue', () => {
  test('adds a job with the options of task and caller', async () => {
    await query(`insert into account (email, password_hash) values ('a@example.com', 'x')`)
    const [account] = await query('select id from account')
    const ref = await db.transaction((tx) =>
      enqueue(
        tx,
        plainTask,
        { id: 1, note: 'x' },
        { ownerId: account!.id as number, settings: createJobSettings(5), requestId: 'r1' },
      ),
    )
    assert.ok(isUuid(ref.jobId))
    assert.equal(ref.joined, false)
    assert.equal(ref.result, plainTask.result)
    const row = await readRow(ref.jobId)
    assert.deepEqual(
      [row.name, row.queue, row.owner_id, row.payload, row.max_tries, row.request_id, row.status],
      ['test.plain', 'test', account!.id, { id: 1, note: 'x' }, 5, 'r1', 'available'],
    )
  })

  test("uses the task's number of tries", async () => {
    const ref = await db.transaction((tx) => enqueue(tx, actorTask, { id: 1, note: '' }, options))
    const row = await readRow(ref.jobId)
    assert.equal(row.max_tries, 7)
  })

  test("uses the actor as mailbox, or the owner for the task, with the task's limit", async () => {
    const { id: ownerId } = (await query('select id from account'))[0] as { id: number }
    const mailboxOf = async (task: typeof plainTask, of = options) => {
      const { jobId } = await db.transaction((tx) => enqueue(tx, task, { id: 1, note: '' }, of))
      const row = await readRow(jobId)
      return [row.mailbox, row.mailbox_limit]
    }
    assert.deepEqual(await mailboxOf(plainTask), ['test.plain/0', null])
    assert.deepEqual(await mailboxOf(plainTask, { ...options, ownerId }), [`test.plain/${ownerId}`, null])
    assert.deepEqual(await mailboxOf(defineTask({ ...plainTask, limit: 3 })), ['test.plain/0', 3])
    assert.deepEqual(await mailboxOf(waitingTask), ['other:1', 1])
    assert.deepEqual(await mailboxOf(defineTask({ ...waitingTask, limit: 2 })), ['other:1', 2])
    assert.deepEqual(await mailboxOf(defineTask({ ...plainTask, actor: () => null })), ['test.plain/0', null])
  })

  test('validates the payload and applies its defaults before any write', async () => {
    const ref = await db.transaction((tx) =>
      enqueue(tx, plainTask, { id: 1 } as z.output<typeof Payload>, options),
    )
    assert.deepEqual((await readRow(ref.jobId)).payload, { id: 1, note: 'none' })
    const before = await query('select count(*) from job')
    for (const bad of [{ id: 'one' }, { id: 1, more: true }, null]) {
      await assert.rejects(
        db.transaction((tx) => enqueueMany(tx, plainTask, [{ id: 1, note: '' }, bad as never], options)),
        z.ZodError,
      )
    }
    assert.deepEqual(await query('select count(*) from job'), before)
  })

  test('can join or wait', async () => {
    const add = (task: typeof actorTask) =>
      db.transaction((tx) => enqueue(tx, task, { id: 9, note: '' }, options))
    const [one, two] = [await add(actorTask), await add(actorTask)]
    assert.deepEqual([two.jobId, two.joined], [one.jobId, true])
    const [three, four] = [await add(waitingTask), await add(waitingTask)]
    assert.notEqual(three.jobId, four.jobId)
    assert.deepEqual([four.joined, await ledger.status(four.jobId)], [false, 'available'])
  })

  test('delays a job by the clock of the database', async (t) => {
    const before = Date.now()
    t.mock.method(Date, 'now', () => before + 3_600_000)
    const ref = await db.transaction((tx) =>
      enqueue(tx, plainTask, { id: 1, note: '' }, { ...options, delayMs: 60_000 }),
    )
    const wait = ((await readRow(ref.jobId)).run_at as Date).getTime() - before
    assert.ok(wait >= 60_000 && wait < 600_000)
  })

  test('keeps the order of many jobs, accepts none, and rolls back with its transaction', async () => {
    const payloads = Array.from({ length: 50 }, (_, id) => ({ id, note: '' }))
    const refs = await db.transaction((tx) => enqueueMany(tx, plainTask, payloads, options))
    const rows = await query('select id, payload from job where id = any($1) order by ordinal', [
      refs.map((ref) => ref.jobId),
    ])
    assert.deepEqual(
      rows.map((row) => (row.payload as { id: number }).id),
      payloads.map(({ id }) => id),
    )
    assert.deepEqual(
      rows.map((row) => row.id),
      refs.map((ref) => ref.jobId),
    )
    assert.deepEqual(await db.transaction((tx) => enqueueMany(tx, plainTask, [], options)), [])
    const lost: string[] = []
    await assert.rejects(
      db.transaction(async (tx) => {
        lost.push((await enqueue(tx, plainTask, { id: 1, note: '' }, options)).jobId)
        throw new Error('the row that it was for is refused')
      }),
    )
    assert.deepEqual(await query('select 1 from job where id = any($1)', [lost]), [])
  })
})

describe('work that is loaded lazily', () => {
  const run = (_ctx: TaskContext, n: number) => Promise.resolve(n + 1)
  const ctx = {} as TaskContext

  test('is loaded once, by the first run', async () => {
    let loads = 0
    const lazy = loadLazily(async () => {
      loads++
      return { run }
    })
    assert.equal(loads, 0)
    assert.equal(await lazy(ctx, 1), 2)
    assert.equal(await lazy(ctx, 2), 3)
    assert.equal(loads, 1)
  })

  test('fails its run if it cannot be loaded, and is loaded by the next', async () => {
    let loads = 0
    const lazy = loadLazily(async () => {
      if (loads++ === 0) throw new Error('gone')
      return { run }
    })
    await assert.rejects(lazy(ctx, 1), /gone/)
    assert.equal(await lazy(ctx, 1), 2)
  })
})

describe('the registry', () => {
  test('gives every task a unique name in its area, and a queue', async () => {
    const names = tasks.map(({ name }) => name)
    assert.equal(new Set(names).size, names.length)
    for (const { name, queue, pool } of tasks) {
      assert.match(name, /^[a-z][a-z_-]*\.[a-z][a-z_-]*$/)
      assert.match(queue, /^[a-z][a-z_-]*$/)
      assert.ok(['io', 'cpu', 'children', 'model'].includes(pool))
    }
    assert.deepEqual(queuesOf(tasks), [...new Set(tasks.map(({ queue }) => queue))].sort())
    assert.deepEqual(await loadTasks(), tasks)
  })

  test('finds tasks by name, and fails for unknown ones', () => {
    const find = createTaskFinder(tasks)
    for (const task of tasks) assert.equal(find(task.name), task)
    assert.throws(() => find('no.such'), /no\.such/)
  })
})
