import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TaskContext } from '../../tasks/context.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { scheduleEntries } from '../../tasks/schedules/entries.ts'
import { enforceRetention } from '../../tasks/system/retention.task.ts'
import { createTestDatabase } from '../database.ts'

/** The task prunes rows that are older than their setting, and no others. */

const { db, query } = await createTestDatabase()
const runTask = (settings: Record<string, string> = {}, signal = new AbortController().signal) =>
  enforceRetention.run(
    { db, settings: parseSettings(settings), signal, reportProgress: () => {} } as unknown as TaskContext,
    {},
  )
/** Reads the values of a column that remain in a table. */
const readRemaining = async (table: string, column: string): Promise<string> =>
  (await query(`select ${column}::text as value from ${table} order by 1`))
    .map(({ value }) => value)
    .join(' ')
/** SQL values of an old time, which the pruner deletes, and a young one. Each is an hour from the limit of `days`. */
const AGED_ROWS = (days: number): string =>
  `(values ('old', now() - interval '${days} days 1 hour'), ('young', now() - interval '${days} days' + interval '1 hour')) given(name, at)`

describe('retention', { concurrency: false }, () => {
  test('deletes sends 90 days after their end, in batches, but none in progress', async () => {
    const send = (n: number, status: string, rest: string) =>
      query(`insert into comms_send (id, channel, job_id, recipients, status, requested_at, settled_at, message, detail, created_at)
        select gen_random_uuid(), 'email', gen_random_uuid(), '{x}', ${status}, ${rest}, name, at from ${AGED_ROWS(90)}, generate_series(1, ${n})`)
    await send(2500, `'sent'`, 'at, at, null')
    await send(1, `'unknown'`, `at, at, '{}'`)
    await send(1, `'sending'`, `at, null, '{}'`)
    await send(1, `'queued'`, `null, null, '{}'`)
    // This send was scheduled long ago but sent recently. The provider may still report events about it.
    await send(1, `'sent'`, `now(), now(), null`)
    assert.equal((await runTask()).comms_send, 2501)
    const kept = await query(
      `select status, detail, count(*)::int as n from comms_send group by 1, 2 order by 1, 2`,
    )
    assert.deepEqual(
      kept.map(({ status, detail, n }) => `${status} ${detail} ${n}`),
      [
        'queued old 1',
        'queued young 1',
        'sending old 1',
        'sending young 1',
        'sent old 1',
        'sent young 2501',
        'unknown young 1',
      ],
    )
  })

  test('deletes events of the payment provider after 90 days, unless they wait', async () => {
    await query(`insert into payment_event (id, type, created_at, received_at, data, applied_at)
      select name || applied, 'x', at, at, case when not applied then '{}'::jsonb end, case when applied then at end
      from ${AGED_ROWS(90)}, (values (true), (false)) a(applied)`)
    assert.equal((await runTask()).payment_event, 1)
    assert.equal(await readRemaining('payment_event', 'id'), 'oldfalse youngfalse youngtrue')
  })

  test('deletes usage after a year, previews after a month, invites 90 days after expiry', async () => {
    await query(`insert into ai_usage (user_id, action, vendor, model, input_tokens, output_tokens, estimated, success, created_at)
      select name, 'chat', 'v', 'm', 1, 1, false, true, at from ${AGED_ROWS(365)}`)
    await query(`insert into voice_preview (digest, provider, model, voice, speed, text, generation, byte_size, used_at)
      select sha256(name::bytea), 'p', 'm', 'v', 1, name, gen_random_uuid(), 1, at from ${AGED_ROWS(30)}`)
    await query(`insert into voice_preview_chunk (digest, generation, ordinal, start, bytes)
      select digest, generation, 0, 0, 'x' from voice_preview`)
    await query(`insert into organization (name, slug) values ('N', 'n')`)
    await query(`insert into organization_invite (organization_id, email, role, status, expires_at, accepted_at)
      select o.id, given.name || status || '@x', 'member', status, at, case status when 'accepted' then at end
      from organization o, ${AGED_ROWS(90)}, (values ('pending'), ('accepted'), ('revoked'), ('expired')) s(status)`)
    const { ai_usage, voice_preview, organization_invite } = await runTask()
    assert.deepEqual([ai_usage, voice_preview, organization_invite], [1, 1, 4])
    assert.equal(await readRemaining('ai_usage', 'user_id'), 'young')
    assert.equal(
      await readRemaining('voice_preview join voice_preview_chunk using (digest)', 'text'),
      'young',
    )
    assert.equal(
      await readRemaining('organization_invite', `split_part(email, '@', 1)`),
      'youngaccepted youngexpired youngpending youngrevoked',
    )
  })

  test('deletes rows of deleted documents after a month, and keeps their successors', async () => {
    const document = async (title: string, deletedAt = 'null', collectedAt = 'null'): Promise<number> =>
      (
        await query(
          `insert into document (title, media_type, byte_size, sha256, deleted_at, expires_at, pruned_at)
           values ($1, 't', 1, sha256(gen_random_uuid()::text::bytea), ${deletedAt}, ${deletedAt}, ${collectedAt}) returning id::int`,
          [title],
        )
      )[0]!.id as number
    const old = await document('old')
    const next = await document('next')
    await query('update document set supersedes_id = $1 where id = $2', [old, next])
    await query(
      `update document set deleted_at = now() - interval '31 days', expires_at = now(), pruned_at = now() where id = $1`,
      [old],
    )
    await document('waits', `now() - interval '31 days'`)
    await document('young', `now() - interval '29 days'`, 'now()')
    assert.equal((await runTask()).document, 1)
    assert.equal(await readRemaining('document', 'title'), 'next waits young')
    const [row] = await query(
      'select supersedes_id, json::json ->> $2 as shown from document where id = $1',
      [next, 'supersedes_id'],
    )
    assert.deepEqual(row, { supersedes_id: null, shown: null })
  })

  test('keeps everything if the setting is 0', async () => {
    await query('delete from payment_event')
    await query(
      `insert into payment_event (id, type, created_at, received_at, applied_at) values ('first', 'x', now(), '2001-01-01', now())`,
    )
    assert.equal('payment_event' in (await runTask({ PAYMENT_EVENTS_KEEP_DAYS: '0' })), false)
    assert.equal(await readRemaining('payment_event', 'id'), 'first')
    assert.equal((await runTask({ PAYMENT_EVENTS_KEEP_DAYS: '1' })).payment_event, 1)
  })

  test('ends before the next batch when it is aborted, and continues an hour later', async () => {
    await query(
      `insert into payment_event (id, type, created_at, received_at, applied_at) values ('late', 'x', now(), '2001-01-01', now())`,
    )
    await assert.rejects(runTask({}, AbortSignal.abort()), { name: 'AbortError' })
    assert.equal((await runTask()).payment_event, 1)
    const entry = scheduleEntries.find(({ identifier }) => identifier === 'retention')
    assert.deepEqual([entry?.match, entry?.task.name], ['53 * * * *', 'system.retention'])
    assert.deepEqual([enforceRetention.actor?.({}, null), enforceRetention.whenBusy], ['retention', 'join'])
  })
})
