import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { spec, withClient } from '../sql/ledger-help.ts'
import { until } from '../until.ts'
import { step, workerLedger } from './ledger-parts.ts'

/** Jobs that a worker has taken many at a time: nothing is written to their rows until they end, or have run for a while. */

const { base, help, lease, open, notes } = await workerLedger()

describe('what the worker ledger holds', () => {
  // A ledger looks after what it holds for as long as there is any, also after its database is gone.
  afterEach(() =>
    until('no hold is left', async () => (await base.query('select from job_hold')).length === 0),
  )

  const wanted = { lane: 'io', most: 500, afterOwner: -1 }
  /** Jobs of a queue of their own that a ledger has taken, and holds. */
  const holding = async (count: number, ...opened: Parameters<typeof open>) => {
    const all = open(...opened)
    const jobs = Array.from({ length: count }, () => spec({ front: 0 }))
    const queue = jobs[0]!.id
    await help.enqueue(...jobs.map((job) => ({ ...job, queue })))
    const taken = await all.ledger.take({ ...wanted, queue })
    assert.deepEqual(
      taken.map(({ id }) => id),
      jobs.map(({ id }) => id),
    )
    const held = () => base.query('select id from job_hold where queue = $1', [queue])
    assert.equal((await held()).length, 1)
    const take = (ledger = all.ledger) => ledger.take({ ...wanted, queue })
    return { ...all, ids: jobs.map(({ id }) => id), held, take }
  }
  const done = (id: string, result = '1') =>
    ({ id, attempt: 1, outcome: 'done', result, actor: null }) as const

  test('what is done soon is written once, and the hold goes', async () => {
    const { ledger, ids, held, named, marked, superseded } = await holding(20)
    assert.deepEqual(marked, [], 'nothing has changed for who watches')
    assert.ok((await Promise.all(ids.map((id) => ledger.finish(done(id))))).every(Boolean))
    await ledger.idle()
    assert.deepEqual([named('job_begin').length, await held(), superseded], [0, [], []])
    assert.deepEqual([...marked].sort(), [...ids].sort())
    for (const id of ids) {
      assert.deepEqual([await help.status(id), (await help.row(id)).result], ['done', 1])
      await help.assertSound(id)
    }
  })

  test('what takes longer is written as running, once, under its lease', async () => {
    const { ledger, ids, held, named, marked } = await holding(20)
    await until('all run', async () => (await help.status(ids[19]!)) === 'running')
    await until('the hold is gone', async () => (await held()).length === 0)
    assert.equal(named('job_begin').length, 1)
    assert.deepEqual([...marked].sort(), [...ids].sort())
    assert.deepEqual([(await help.row(ids[0]!)).lease_id, (await help.row(ids[0]!)).attempt], [lease, 1])
    assert.ok((await Promise.all(ids.map((id) => ledger.finish(done(id))))).every(Boolean))
  })

  test('one with its fence up keeps nobody waiting, and is written as running after it', async () => {
    const { ledger, ids, held } = await holding(20)
    const [fenced, ...rest] = ids as [string, ...string[]]
    await withClient(base.url, async (client) => {
      await client.query('begin')
      await client.query('select job_fence($1, 1)', [fenced])
      await until('the others run', async () => (await help.status(rest[0]!)) === 'running')
      assert.ok((await Promise.all(rest.map((id) => ledger.finish(done(id))))).every(Boolean))
      assert.equal(await help.status(fenced), 'queued')
    })
    await until('it runs', async () => (await help.status(fenced)) === 'running')
    await until('the hold is gone', async () => (await held()).length === 0)
    assert.equal(await ledger.finish(done(fenced)), true)
  })

  test('before its progress, or an end of another kind, it is written that a job runs', async () => {
    const { ledger, ids, superseded } = await holding(20)
    const [noted, failed, retried, released, lost] = ids as [string, string, string, string, string]
    for (const n of [1, 2]) ledger.progress(step(noted, n))
    const ends = await Promise.all([
      ledger.finish({ id: failed, attempt: 1, outcome: 'failed', code: 'internal', detail: 'x' }),
      ledger.finish({ id: retried, attempt: 1, outcome: 'retry', delay_ms: 0 }),
      ledger.finish({ id: released, attempt: 1, outcome: 'release' }),
      ledger.finish({ id: lost, attempt: 1, outcome: 'interrupted' }),
      ledger.finish(done(noted)),
    ])
    assert.deepEqual([ends.every(Boolean), superseded], [true, []])
    assert.deepEqual(await notes(noted), [1, 2])
    assert.deepEqual(await Promise.all([noted, failed, retried, released, lost].map(help.status)), [
      'done',
      'failed',
      'sent',
      'sent',
      'sent',
    ])
    for (const id of ids.slice(0, 5)) await help.assertSound(id)
    await ledger.idle()
  })

  test('a result that can not be stored fails its job, and the hold goes', async () => {
    const { ledger, ids, held } = await holding(20)
    const ends = ids.map((id, i) => ledger.finish(done(id, i === 3 ? '"a\\u0000b"' : '1')))
    assert.ok((await Promise.all(ends)).every(Boolean))
    assert.deepEqual([await help.status(ids[3]!), await help.status(ids[4]!)], ['failed', 'done'])
    await ledger.idle()
    assert.deepEqual(await held(), [])
  })

  test('when answers are lost, and through an outage, nothing is lost or doubled', async () => {
    const { ledger, ids, db, held, superseded } = await holding(40)
    const seen = new Map<string, number>()
    db.fault = (name) => {
      const times = (seen.get(name) ?? 0) + 1
      seen.set(name, times)
      return times === 1 ? 'before' : times === 2 ? 'after' : null
    }
    const [slow, ...quick] = ids as [string, ...string[]]
    ledger.progress(step(slow, 1))
    await Promise.all(quick.map((id) => ledger.finish(done(id))))
    await ledger.finish(done(slow))
    await until('the hold is gone', async () => (await held()).length === 0)
    assert.deepEqual([superseded, await notes(slow)], [[], [1]])
    for (const id of ids) {
      assert.deepEqual([await help.status(id), (await help.row(id)).attempt], ['done', 1])
      await help.assertSound(id)
    }
    assert.ok(seen.get('job_begin')! >= 2 && seen.get('job_done')! >= 2)
  })

  test('a take whose answer was lost is let go, and its jobs are taken again', async () => {
    const { ledger, ids, db, held, take } = await holding(20)
    for (const id of ids) void ledger.finish(done(id))
    await ledger.idle()
    const more = Array.from({ length: 20 }, () => spec({ front: 0, queue: ids[0]! }))
    await help.enqueue(...more)
    db.fault = (name) => (name === 'job_pull' ? 'after' : null)
    // Which of the ways of looking is due depends on the time that others have taken.
    await until('they are held', async () => {
      await take().catch(() => [])
      return (await held()).length === 1
    })
    db.fault = null
    const known = async () => (await held()).map(({ id }) => String(id))
    for (const _ of [1, 2]) ledger.reconcile(await known())
    const again: string[] = []
    await until('they are taken', async () => {
      again.push(...(await take()).map(({ id }) => id))
      return again.length === 20
    })
    assert.deepEqual(
      again,
      more.map(({ id }) => id),
    )
    for (const id of again) assert.equal(await ledger.finish(done(id)), true)
  })
})
