import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import {
  applySendEvents,
  beginSendRequest,
  type Channel,
  closeOrphanedSends,
  findSendById,
  insertSend,
  markFailed,
  markSent,
  markUnknown,
  type SendEvent,
} from '../../sql/comms/sends.ts'
import { type Chance, createChance } from '../chance.ts'
import { createTestDatabase } from '../database.ts'
import { createRunOptions, SEED } from '../runs.ts'

/** Providers' events about accepted messages lead to the same state in any order. */

const { db, query } = await createTestDatabase()

const STATUSES_BY_RANK = ['sent', 'delivered', 'failed', 'bounced', 'complained'] as const
type Status = SendEvent['status']

async function addSend(channel: Channel = 'email'): Promise<string> {
  const id = randomUUID()
  const message = { to: ['a@example.com'] }
  await db.run(insertSend({ id, channel, ownerId: null, jobId: id, recipients: ['a@example.com'], message }))
  return id
}

const createEvent = (sendId: string | null, status: Status, more: Partial<SendEvent> = {}): SendEvent => ({
  channel: 'email',
  providerId: `provider-${sendId}`,
  sendId,
  status,
  providerStatus: status,
  errorCode: status === 'failed' ? 'email.undelivered' : null,
  detail: status === 'failed' ? 'no' : null,
  ...more,
})
const applyAll = async (...events: SendEvent[]): Promise<number> =>
  (await db.one(applySendEvents(events))).moved
const readStatus = async (id: string): Promise<string> => (await db.one(findSendById(id))).status

const acceptSend = async (id: string, providerId: string | null = null): Promise<void> => {
  await db.one(beginSendRequest(id, { id, attempt: 1 }, false))
  await db.one(markSent(id, { providerId, status: 'queued', detail: 'but not for b@example.com' }))
}

/** Functions that bring a send into each state that it can have before the provider's events. */
const stateSetups: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
  queued: () => Promise.resolve(),
  scheduled: (id) => query(`update comms_send set status = 'scheduled', send_at = now() where id = $1`, [id]),
  cancelled: (id) =>
    query(`update comms_send set status = 'cancelled', message = null, settled_at = now() where id = $1`, [
      id,
    ]),
  sending: (id) => db.one(beginSendRequest(id, { id, attempt: 1 }, false)),
  sent: (id) => acceptSend(id),
  failed: (id) => db.run(markFailed(id, 1, { code: 'email.failed', detail: 'no' })),
  unknown: async (id) => {
    await stateSetups.sending!(id)
    await db.one(markUnknown(id, 'no answer'))
  },
}

test('events lead to the same state in any order, repeated, and in any batches', async () => {
  const chance: Chance = createChance(SEED)
  for (let run = 0; run < createRunOptions(60).numRuns; run++) {
    const reported = Array.from({ length: chance.between(1, 6) }, () => chance.pick(STATUSES_BY_RANK))
    const expected = reported.toSorted(
      (a, b) => STATUSES_BY_RANK.indexOf(b) - STATUSES_BY_RANK.indexOf(a),
    )[0]!
    for (let order = 0; order < 3; order++) {
      const id = await addSend()
      await stateSetups[chance.pick(Object.keys(stateSetups))]!(id)
      const events = [...reported, ...reported.filter(() => chance.isHit(0.5))]
        .map((status) => ({ status, place: chance.next() }))
        .sort((a, b) => a.place - b.place)
        .map(({ status }) =>
          createEvent(chance.isHit(0.9) ? id : null, status, { providerId: `provider-${id}` }),
        )
      // At least one event must carry our id, or none would match.
      events[0] = { ...events[0]!, sendId: id }
      while (events.length > 0) await applyAll(...events.splice(0, chance.between(1, events.length)))
      assert.equal(await readStatus(id), expected, `${reported} (seed ${SEED}, run ${run})`)
    }
  }
})

test('concurrent events of one message lead to one state', async () => {
  for (let run = 0; run < 10; run++) {
    const ids = [await addSend(), await addSend(), await addSend()]
    const events = ids.flatMap((id) => STATUSES_BY_RANK.map((status) => createEvent(id, status)))
    const shuffle = (seed: number) => {
      const chance = createChance(SEED + run * 10 + seed)
      return events.toSorted(() => chance.next() - 0.5)
    }
    await Promise.all([0, 1, 2, 3].map((seed) => applyAll(...shuffle(seed))))
    for (const id of ids) assert.equal(await readStatus(id), 'complained')
  }
})

describe('an event', () => {
  test('moves a message once', async () => {
    const id = await addSend()
    await acceptSend(id)
    assert.equal(await applyAll(createEvent(id, 'delivered')), 1)
    const row = () => query('select * from comms_send where id = $1', [id])
    const first = await row()
    assert.equal(await applyAll(createEvent(id, 'delivered', { detail: 'another' })), 0)
    assert.equal(await applyAll(createEvent(id, 'sent')), 0)
    assert.deepEqual(await row(), first)
    assert.deepEqual(
      [first[0]!.provider_id, first[0]!.provider_status, first[0]!.message, first[0]!.detail],
      [`provider-${id}`, 'delivered', null, 'but not for b@example.com'],
    )
  })

  test('also finds its message by the provider’s id', async () => {
    const id = await addSend('sms')
    await acceptSend(id, `SM${id}`)
    assert.equal(await applyAll(createEvent(null, 'failed', { channel: 'sms', providerId: `SM${id}` })), 1)
    assert.equal(await readStatus(id), 'failed')
  })

  test('changes nothing for an unknown message, another channel or another provider id', async () => {
    const [mail, text] = [await addSend(), await addSend('sms')]
    await acceptSend(mail)
    await acceptSend(text, `SM${text}`)
    const none = [
      createEvent(randomUUID(), 'delivered'),
      createEvent(null, 'delivered', { providerId: 'nobody’s' }),
      createEvent(mail, 'delivered', { channel: 'call' }),
      createEvent(text, 'delivered', { channel: 'sms', providerId: 'SMother' }),
    ]
    for (const event of none) assert.equal(await applyAll(event), 0)
    assert.equal(await applyAll(...none), 0)
    assert.deepEqual([await readStatus(mail), await readStatus(text)], ['sent', 'sent'])
  })

  test('that arrives before the answer settles a message, and no attempt sends or settles it again', async () => {
    for (const [from, reach] of Object.entries(stateSetups))
      for (const status of STATUSES_BY_RANK) {
        const id = await addSend('sms')
        await reach(id)
        assert.equal(
          await applyAll(createEvent(id, status, { channel: 'sms', providerId: `SM${id}` })),
          1,
          from,
        )
        await db.maybeOne(markSent(id, { providerId: `SM${id}`, status: 'queued', detail: null }))
        assert.equal(await db.maybeOne(beginSendRequest(id, { id, attempt: 2 }, true)), null)
        await db.run(markFailed(id, 1, { code: 'telephony.failed', detail: 'no' }))
        await db.maybeOne(markUnknown(id, 'no answer'))
        await query(`update comms_send set created_at = now() - interval '1 hour' where id = $1`, [id])
        await db.one(closeOrphanedSends(100))
        assert.equal(await readStatus(id), status, `${status} from ${from}`)
      }
  })
})

test('events about some recipients leave a message to its deferred ones, and still suppress addresses', async () => {
  const id = await addSend()
  await db.one(beginSendRequest(id, { id, attempt: 1 }, false))
  await query(
    `update comms_send set status = 'queued', next_attempt_at = now(),
       deliveries = '[{"address": "a@example.com", "status": "sent"}, {"address": "b@example.com", "status": "queued"}]' where id = $1`,
    [id],
  )
  const bounced = createEvent(id, 'bounced', { suppression: { address: 'a@example.com', eventId: 'e' } })
  assert.equal(await applyAll(createEvent(id, 'delivered'), bounced), 0)
  const [send] = await query('select status, message is null as is_cleared from comms_send where id = $1', [
    id,
  ])
  assert.deepEqual(send, { status: 'queued', is_cleared: false })
  assert.equal(
    (await query(`select from comms_suppression where address = 'a@example.com'`)).length > 0,
    true,
  )
  await query(
    `update comms_send set deliveries = '[{"address": "b@example.com", "status": "sent"}]' where id = $1`,
    [id],
  )
  assert.equal(await applyAll(createEvent(id, 'delivered')), 1)
})
