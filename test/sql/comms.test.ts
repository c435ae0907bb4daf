import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import {
  beginSendRequest,
  type Channel,
  findSendById,
  insertSend,
  markFailed,
  markSent,
  markUnknown,
} from '../../sql/comms/sends.ts'
import { createTestDatabase } from '../database.ts'

/** States and constraints of the ledger of sends. */

const { db, query } = await createTestDatabase()

async function addSend(channel: Channel = 'sms'): Promise<string> {
  const id = randomUUID()
  const fields = {
    id,
    channel,
    ownerId: null,
    jobId: randomUUID(),
    recipients: ['+14155552671'],
    message: { a: 1 },
  }
  await db.run(insertSend(fields))
  return id
}
const createAttempt = (n: number) => ({ id: randomUUID(), attempt: n })
const readStatus = async (id: string): Promise<string> => (await db.one(findSendById(id))).status
const createAcceptance = (providerId: string | null) => ({ providerId, status: 'queued', detail: null })

/** Functions that bring a send into each state. */
const stateSetups: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
  queued: () => Promise.resolve(),
  scheduled: (id) => query(`update comms_send set status = 'scheduled', send_at = now() where id = $1`, [id]),
  cancelled: (id) =>
    query(`update comms_send set status = 'cancelled', message = null, settled_at = now() where id = $1`, [
      id,
    ]),
  sending: (id) => db.one(beginSendRequest(id, createAttempt(1), false)),
  sent: async (id) => {
    await stateSetups.sending!(id)
    await db.one(markSent(id, createAcceptance(`SM${id}`)))
  },
  failed: async (id) => {
    await stateSetups.sending!(id)
    await db.run(markFailed(id, 1, { code: 'telephony.failed', detail: 'no' }))
  },
  unknown: async (id) => {
    await stateSetups.sending!(id)
    await db.run(markUnknown(id, 'no answer'))
  },
}

describe('every transition, from every state', () => {
  const steps: Readonly<
    Record<string, [(id: string) => Promise<unknown>, Readonly<Record<string, string>>]>
  > = {
    'a request begins': [
      (id) => db.maybeOne(beginSendRequest(id, createAttempt(1), false)),
      {
        ...{ queued: 'sending', sending: 'sending', sent: 'sent', failed: 'sending', unknown: 'unknown' },
        ...{ scheduled: 'sending', cancelled: 'cancelled' },
      },
    ],
    'it was taken': [
      (id) => db.maybeOne(markSent(id, createAcceptance(`SM${id}`))),
      {
        ...{ queued: 'queued', sending: 'sent', sent: 'sent', failed: 'failed', unknown: 'sent' },
        ...{ scheduled: 'scheduled', cancelled: 'cancelled' },
      },
    ],
    'it was not': [
      (id) => db.run(markFailed(id, 1, { code: 'telephony.failed', detail: 'no' })),
      {
        ...{ queued: 'failed', sending: 'failed', sent: 'sent', failed: 'failed', unknown: 'unknown' },
        ...{ scheduled: 'failed', cancelled: 'cancelled' },
      },
    ],
    'the outcome is unknown': [
      (id) => db.run(markUnknown(id, 'no answer')),
      {
        ...{ queued: 'queued', sending: 'unknown', sent: 'sent', failed: 'failed', unknown: 'unknown' },
        ...{ scheduled: 'scheduled', cancelled: 'cancelled' },
      },
    ],
  }
  for (const [step, [run, ends]] of Object.entries(steps)) {
    test(step, async () => {
      for (const [from, to] of Object.entries(ends)) {
        const id = await addSend()
        await stateSetups[from]!(id)
        assert.equal(await readStatus(id), from)
        await run(id)
        assert.equal(await readStatus(id), to, `from ${from}`)
      }
    })
  }
})

test('an attempt cannot settle a message that a later one is sending', async () => {
  const id = await addSend()
  await db.one(beginSendRequest(id, createAttempt(2), false))
  await db.run(markFailed(id, 1, { code: 'telephony.failed', detail: 'no' }))
  assert.equal(await readStatus(id), 'sending')
  await db.run(markFailed(id, 2, { code: 'telephony.failed', detail: 'no' }))
  assert.equal(await readStatus(id), 'failed')
})

test('only one request runs at a time, and it is repeated only if that changes nothing', async () => {
  const id = await addSend()
  const begun = await Promise.all(
    Array.from({ length: 8 }, () => db.maybeOne(beginSendRequest(id, createAttempt(1), false))),
  )
  assert.equal(begun.filter((row) => row !== null).length, 1)
  assert.equal(await db.maybeOne(beginSendRequest(id, createAttempt(1), false)), null)
  assert.notEqual(await db.maybeOne(beginSendRequest(id, createAttempt(1), true)), null)
  const [row] = await query('select requests from comms_send where id = $1', [id])
  assert.equal(row!.requests, 2)
  await db.one(markSent(id, createAcceptance('SM1')))
  assert.equal(await db.maybeOne(beginSendRequest(id, createAttempt(1), true)), null)
})

test('a provider id belongs to one send of a channel', async () => {
  const [first, second, call] = [await addSend(), await addSend(), await addSend('call')]
  for (const id of [first, second, call]) await stateSetups.sending!(id)
  assert.notEqual(await db.maybeOne(markSent(first, createAcceptance('SM2'))), null)
  assert.equal(await db.maybeOne(markSent(second, createAcceptance('SM2'))), null)
  assert.notEqual(await db.maybeOne(markSent(call, createAcceptance('SM2'))), null)
  const clash = query(
    `update comms_send set status = 'sent', provider_id = 'SM2', settled_at = now() where id = $1`,
    [second],
  )
  await assert.rejects(clash, { constraint: 'comms_send_provider_id_key' })
  const mails = [await addSend('email'), await addSend('email')]
  for (const id of mails) {
    await stateSetups.sending!(id)
    assert.notEqual(await db.maybeOne(markSent(id, createAcceptance(null))), null, 'mail has no such id')
  }
})

describe('constraints', () => {
  const row = { id: '', channel: 'sms', job_id: randomUUID(), recipients: ['+1'], message: '{}' }
  const insert = (more: object) => {
    const fields = { ...row, id: randomUUID(), ...more }
    const keys = Object.keys(fields)
    const values = keys.map((_, n) => `$${n + 1}`)
    return query(
      `insert into comms_send (${keys.join(', ')}) values (${values.join(', ')}) returning id`,
      Object.values(fields),
    )
  }
  const at = { requested_at: new Date(), settled_at: new Date() }
  const cases: readonly [string, object][] = [
    ['comms_send_channel_check', { channel: 'fax' }],
    ['comms_send_purpose_check', { purpose: 'none' }],
    ['comms_send_stream_check', { stream: 'none' }],
    ['comms_send_stream_check', { channel: 'sms', stream: 'broadcast' }],
    ['comms_send_recipients_check', { recipients: [] }],
    ['comms_send_status_check', { status: 'lost', ...at }],
    ['comms_send_owner_id_fkey', { owner_id: 2_000_000_000 }],
    ['comms_send_requested_check', { status: 'sending' }],
    ['comms_send_settled_check', { settled_at: new Date() }],
    ['comms_send_settled_check', { status: 'sent', requested_at: new Date() }],
    ['comms_send_error_check', { status: 'failed', ...at }],
    ['comms_send_error_check', { status: 'unknown', ...at, error_code: 'x' }],
    ['comms_send_message_check', { message: null }],
    ['comms_send_requested_check', { status: 'delivered', settled_at: new Date(), provider_id: 'p' }],
    ['comms_send_settled_check', { status: 'bounced', requested_at: new Date(), provider_id: 'p' }],
    ['comms_send_provider_id_check', { status: 'complained', ...at }],
    ['comms_send_attachments_check', { channel: 'sms', attachments: '[{}]' }],
    ['comms_send_attachments_check', { channel: 'email', attachments: '{}' }],
    ['comms_send_deliveries_check', { deliveries: '{}' }],
    ['comms_send_scheduled_check', { status: 'scheduled' }],
    ['comms_send_settled_check', { status: 'cancelled' }],
    ['comms_send_settled_check', { status: 'scheduled', send_at: new Date(), settled_at: new Date() }],
    ['comms_send_error_check', { status: 'cancelled', settled_at: new Date(), error_code: 'x' }],
  ]
  for (const [constraint, more] of cases) {
    test(`${constraint}: ${JSON.stringify(more)}`, () => assert.rejects(insert(more), { constraint }))
  }

  test('accept valid rows, and each rejects an invalid one', async () => {
    await insert({ status: 'sent', ...at, message: null, provider_id: 'SM9' })
    await insert({ status: 'failed', ...at, error_code: 'x' })
    await insert({ status: 'unknown', ...at })
    await insert({ status: 'scheduled', send_at: new Date() })
    await insert({ status: 'cancelled', message: null, settled_at: new Date() })
    for (const status of ['delivered', 'bounced', 'complained'])
      await insert({ status, ...at, message: null, provider_id: `SM${status}` })
    await insert({ status: 'failed', ...at, message: null, provider_id: 'SMfailed', error_code: 'x' })
    const [{ id }] = (await insert({})) as [{ id: string }]
    await assert.rejects(insert({ id }), { constraint: 'comms_send_pkey' })
    const named = await query(
      `select conname from pg_constraint where conrelid = 'comms_send'::regclass and contype <> 'n'`,
    )
    const tried = new Set([...cases.map(([name]) => name), 'comms_send_pkey'])
    assert.deepEqual(
      named.map(({ conname }) => conname as string).filter((name) => !tried.has(name)),
      [],
    )
  })
})
