import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import {
  beginSendRequest,
  cancelSend,
  closeOrphanedSends,
  computeMsUntil,
  findSendById,
  insertSend,
  markDeferred,
  markFailed,
  markSent,
} from '../../sql/comms/sends.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { cancelJobs, fenceJob } from '../../sql/jobs/jobs.ts'
import { createTestDatabase } from '../database.ts'
import { countRounds } from '../runs.ts'
import { buildJobSpec, createLedgerHelp, type JobFields, withClient } from './ledger-help.ts'

/**
 * A message is either cancelled or sent, whichever comes first. Cancelling its job cancels the message, and vice
 * versa.
 */

const database = await createTestDatabase()
const { db, query, url } = database
const ledger = createLedgerHelp(database)
const SETTLE_FUNCTION = 'comms_send_settle'
const HOUR_MS = 3_600_000

interface Message {
  readonly id: string
  readonly jobId: string
}

/** Adds a message with its job, in the mailbox of its number. With `actor: null`, the job is in its owner's mailbox. */
async function addMessage(fields: JobFields & { readonly sendAt?: string } = {}): Promise<Message> {
  const { sendAt, ...more } = fields
  const delay_ms = sendAt === undefined ? null : (await db.one(computeMsUntil(sendAt))).ms
  const job = buildJobSpec({ actor: `sms:${randomUUID()}`, settle: SETTLE_FUNCTION, delay_ms, ...more })
  const id = uuidv7()
  await ledger.enqueue(job)
  const row = { id, channel: 'sms' as const, ownerId: null, jobId: job.id }
  await db.run(insertSend({ ...row, recipients: ['+1'], message: { a: 1 }, sendAt: sendAt ?? null }))
  return { id, jobId: job.id }
}
const timeInAnHour = (): string => new Date(Date.now() + HOUR_MS).toISOString()
const beginSend = ({ id, jobId }: Message, attempt = 1) =>
  db.transaction(async (tx) =>
    (await tx.maybeOne(fenceJob(jobId, attempt))) === null
      ? null
      : tx.maybeOne(beginSendRequest(id, { id: jobId, attempt }, false)),
  )
const addClaimedMessage = async (fields: JobFields = {}): Promise<Message> => {
  const one = await addMessage(fields)
  assert.ok((await ledger.claim(one.jobId, await ledger.lease())) !== null)
  return one
}
const cancelMessage = async ({ id }: Message) => (await db.one(cancelSend(id))).status
const readStatuses = async ({ id, jobId }: Message) => [
  (await db.one(findSendById(id))).status,
  await ledger.status(jobId),
]
const readContent = async ({ id }: Message) => (await db.one(findSendById(id))).message

describe('a waiting message', () => {
  for (const [what, fields] of [
    ['in the mailbox of a number', {}],
    ['in that of an owner', { actor: null }],
  ] as const)
    test(`is cancelled with its job, ${what}, and loses its content`, async () => {
      for (const sendAt of [undefined, timeInAnHour()]) {
        const one = await addMessage({ ...fields, ...(sendAt === undefined ? {} : { sendAt }) })
        assert.deepEqual(
          await readStatuses(one),
          sendAt === undefined ? ['queued', 'available'] : ['scheduled', 'scheduled'],
        )
        assert.equal(await cancelMessage(one), 'cancelled')
        assert.deepEqual(await readStatuses(one), ['cancelled', 'cancelled'])
        assert.equal(await readContent(one), null)
        assert.equal(await beginSend(one), null)
        assert.equal(await cancelMessage(one), 'cancelled', 'also a second time')
      }
    })

  test('is cancelled when its job is cancelled', async () => {
    for (const actor of ['sms:x', null]) {
      const one = await addMessage({ actor, sendAt: timeInAnHour() })
      await db.any(cancelJobs([one.jobId]))
      assert.deepEqual(await readStatuses(one), ['cancelled', 'cancelled'])
    }
  })

  test('is cancelled while it waits for a retry, and keeps no failure', async () => {
    const one = await addClaimedMessage()
    await beginSend(one)
    await db.run(markFailed(one.id, 1, { code: 'telephony.failed', detail: 'no' }))
    await ledger.finish({ id: one.jobId, attempt: 1, outcome: 'retry', delay_ms: HOUR_MS })
    assert.deepEqual(await readStatuses(one), ['failed', 'scheduled'])
    assert.equal(await cancelMessage(one), 'cancelled')
    const [row] = await query('select error_code, detail from comms_send where id = $1', [one.id])
    assert.deepEqual(row, { error_code: null, detail: null })
  })

  test('is cancelled for the recipients of an email who do not have it yet', async () => {
    const one = await addClaimedMessage()
    await beginSend(one)
    const outcomes = { 'a@x': { status: 'sent' } } as const
    await query(
      `update comms_send set channel = 'email', deliveries = '[{"address": "a@x"}, {"address": "b@x"}]' where id = $1`,
      [one.id],
    )
    await db.run(markDeferred(one.id, 1, { seconds: 3600, detail: 'no', isUncertain: false, outcomes }))
    await ledger.finish({ id: one.jobId, attempt: 1, outcome: 'release', delay_ms: HOUR_MS })
    assert.equal(await cancelMessage(one), 'cancelled')
    const [row] = await query('select status, deliveries from comms_send where id = $1', [one.id])
    assert.deepEqual(row, {
      status: 'sent',
      deliveries: [
        { address: 'a@x', status: 'sent' },
        { address: 'b@x', status: 'cancelled' },
      ],
    })
  })

  test('does not delay other messages to its number', async () => {
    const actor = `sms:${randomUUID()}`
    const [scheduled, next] = [
      await addMessage({ actor, sendAt: timeInAnHour() }),
      await addMessage({ actor }),
    ]
    const claim = await ledger.claim(next.jobId, await ledger.lease())
    assert.equal(claim?.id, next.jobId)
    assert.deepEqual(await readStatuses(scheduled), ['scheduled', 'scheduled'])
  })
})

describe('a message that is being sent', () => {
  test('cannot be cancelled, and neither can its job', async () => {
    const one = await addClaimedMessage()
    await beginSend(one)
    assert.equal(await cancelMessage(one), 'sending')
    const { cancel_requested_at } = (await ledger.row(one.jobId)) as unknown as Record<string, unknown>
    assert.deepEqual([await readStatuses(one), cancel_requested_at], [['sending', 'running'], null])
    await db.one(markSent(one.id, { providerId: 'SM1', status: 'queued', detail: null }))
    assert.equal(await cancelMessage(one), 'sent')
  })

  test('is cancelled immediately before its request begins, and its job ends at the next heartbeat', async () => {
    for (const actor of [`sms:${randomUUID()}`, null]) {
      const one = await addClaimedMessage({ actor })
      assert.equal(await cancelMessage(one), 'cancelled')
      assert.deepEqual(await readStatuses(one), ['cancelled', 'running'])
      assert.equal(await beginSend(one), null)
      await db.run(markFailed(one.id, 1, { code: 'telephony.failed', detail: 'no' }))
      await ledger.finish({ id: one.jobId, attempt: 1, outcome: 'cancelled' })
      assert.deepEqual(await readStatuses(one), ['cancelled', 'cancelled'])
    }
  })

  test('is either cancelled or begun when both happen concurrently', async () => {
    const seen = new Set<string>()
    for (let n = 0; n < countRounds(40); n++) {
      const one = await addClaimedMessage(n % 2 === 0 ? {} : { actor: null })
      const tries = [() => cancelMessage(one), () => beginSend(one)]
      const [status, begun] = await Promise.all(
        n % 4 < 2 ? tries.map((run) => run()) : tries.toReversed().map((run) => run()),
      ).then((all) => (n % 4 < 2 ? all : all.toReversed()))
      assert.equal(status === 'cancelled', begun === null)
      assert.equal((await readStatuses(one))[0], begun === null ? 'cancelled' : 'sending')
      seen.add(String(status))
    }
    assert.ok(seen.size > 0)
  })

  test('delays its cancellation until the transaction that begins its request ends', async () => {
    const one = await addClaimedMessage()
    await withClient(url, async (client) => {
      await client.query('begin')
      await client.query('select job_fence($1, 1)', [one.jobId])
      const cancelling = cancelMessage(one)
      await client.query(
        `update comms_send set status = 'sending', requested_at = now() where id = $1 and status = 'queued'`,
        [one.id],
      )
      await client.query('commit')
      assert.equal(await cancelling, 'sending')
    })
    assert.deepEqual(await readStatuses(one), ['sending', 'running'])
  })
})

describe('the end of a job', () => {
  test('fails its message with the reason, if no request went out', async () => {
    const one = await addClaimedMessage()
    const gone = { outcome: 'failed', code: 'job.timeout', detail: 'too long' } as const
    await ledger.finish({ id: one.jobId, attempt: 1, ...gone })
    assert.deepEqual(await readStatuses(one), ['failed', 'failed'])
    const [row] = await query('select error_code, detail from comms_send where id = $1', [one.id])
    assert.deepEqual(row, { error_code: 'job.timeout', detail: 'too long' })
    assert.equal(await cancelMessage(one), 'failed', 'then it is too late')
  })

  test('does not overwrite a known outcome or a request in progress', async () => {
    for (const outcome of ['cancelled', 'failed'] as const) {
      const one = await addClaimedMessage()
      await beginSend(one)
      await ledger.finish({ id: one.jobId, attempt: 1, outcome, code: 'job.timeout' })
      assert.deepEqual(await readStatuses(one), ['sending', outcome])
      await db.one(markSent(one.id, { providerId: one.id, status: 'queued', detail: null }))
    }
    const failed = await addClaimedMessage()
    await beginSend(failed)
    await db.run(markFailed(failed.id, 1, { code: 'telephony.refused', detail: 'why' }))
    await ledger.finish({ id: failed.jobId, attempt: 1, outcome: 'failed', code: 'telephony.refused' })
    const [row] = await query('select detail from comms_send where id = $1', [failed.id])
    assert.equal(row!.detail, 'why')
  })

  test('applies to the message that a retry sends', async () => {
    const one = await addClaimedMessage()
    await ledger.finish({ id: one.jobId, attempt: 1, outcome: 'failed', code: 'job.timeout', detail: 'x' })
    const retry = await ledger.running({ actor: `sms:${randomUUID()}`, settle: SETTLE_FUNCTION })
    const again = { id: one.id, jobId: retry.id }
    assert.notEqual(await beginSend(again), null)
    await query(`update comms_send set created_at = now() - interval '1 hour' where id = $1`, [one.id])
    await db.one(closeOrphanedSends(10))
    assert.deepEqual(await readStatuses(again), ['sending', 'running'], 'it is worked on')
  })
})

test('a scheduled message fails when its job was deleted with its account', async () => {
  const one = await addMessage({ sendAt: timeInAnHour() })
  await query('delete from job where id = $1', [one.jobId])
  await query(`update comms_send set created_at = now() - interval '1 minute' where id = $1`, [one.id])
  assert.equal(await cancelMessage(one), 'scheduled', 'there is nothing to cancel')
  await db.one(closeOrphanedSends(10))
  assert.equal((await db.one(findSendById(one.id))).status, 'failed')
})

test('cancelling an unknown message does nothing', async () => {
  assert.equal(await db.maybeOne(cancelSend(randomUUID())), null)
})

test('a cancelled message causes one webhook event', async () => {
  const [account] = await query(
    `insert into account (email, password_hash) values ('hook@example.com', 'x') returning id`,
  )
  await query(
    `insert into webhook_endpoint (secret, account_id, url, host, events) values ('aaaaaaaa.AAAA', $1, 'https://example.com/', 'example.com', '{send.changed}')`,
    [account!.id],
  )
  const one = await addMessage({ sendAt: timeInAnHour(), owner_id: account!.id as number })
  await query('update comms_send set owner_id = $1 where id = $2', [account!.id, one.id])
  for (let n = 0; n < 2; n++) await cancelMessage(one)
  const statuses = await query(`select body::json -> 'data' ->> 'status' as status from webhook_delivery`)
  assert.deepEqual(statuses, [{ status: 'cancelled' }])
})
