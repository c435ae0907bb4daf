import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { applySendEvents, insertSend, type SendEvent } from '../../sql/comms/sends.ts'
import { filterSuppressed, liftSuppression } from '../../sql/comms/suppressions.ts'
import { createChance } from '../chance.ts'
import { createTestDatabase } from '../database.ts'
import { createRunOptions, SEED } from '../runs.ts'

/** The list of suppressed addresses is the same for any order of events, and follows an admin's changes. */

const { db, query } = await createTestDatabase()

async function addMail(): Promise<string> {
  const id = randomUUID()
  await db.run(
    insertSend({
      id,
      channel: 'email',
      ownerId: null,
      jobId: id,
      recipients: ['a@example.com'],
      message: {},
    }),
  )
  return id
}

const eventOf = (
  sendId: string,
  status: 'bounced' | 'complained',
  address: string,
  eventId: string,
): SendEvent => ({
  channel: 'email',
  providerId: `provider-${sendId}`,
  sendId,
  status,
  providerStatus: status,
  errorCode: null,
  detail: null,
  suppression: { address, eventId },
})
const applyAll = (...events: SendEvent[]) => db.one(applySendEvents(events))
const readSuppressions = () =>
  query(`select address, reason from comms_suppression where stream = 'transactional' order by address`)

test('events lead to the same list in any order, repeated, and in any batches', async () => {
  const chance = createChance(SEED)
  for (let run = 0; run < createRunOptions(30).numRuns; run++) {
    await query('delete from comms_suppression')
    const sends = [await addMail(), await addMail()]
    const events = Array.from({ length: chance.between(1, 8) }, (_, n) => {
      const status = chance.pick(['bounced', 'complained'] as const)
      return eventOf(
        chance.pick(sends),
        status,
        `${chance.pick(['A', 'b', 'C'])}@Example.com`,
        `msg_${run}_${n}`,
      )
    })
    const expected = new Map<string, string>()
    for (const { status, suppression } of events) {
      const address = suppression!.address.toLowerCase()
      if (expected.get(address) !== 'complained') expected.set(address, status)
    }
    const order = [...events, ...events.filter(() => chance.isHit(0.5))]
      .map((event) => ({ event, place: chance.next() }))
      .sort((a, b) => a.place - b.place)
      .map(({ event }) => event)
    while (order.length > 0) await applyAll(...order.splice(0, chance.between(1, order.length)))
    assert.deepEqual(
      await readSuppressions(),
      [...expected].sort().map(([address, reason]) => ({ address, reason })),
      `seed ${SEED}, run ${run}`,
    )
  }
})

test('concurrent events of several mails lead to the same list', async () => {
  await query('delete from comms_suppression')
  const ids = await Promise.all(Array.from({ length: 6 }, addMail))
  const events = ids.flatMap((id, n) =>
    ['a', 'b', 'c'].map((name) =>
      eventOf(id, n % 2 ? 'bounced' : 'complained', `${name}@example.com`, `msg_${n}${name}`),
    ),
  )
  const chance = createChance(SEED)
  const shuffle = () => events.toSorted(() => chance.next() - 0.5)
  await Promise.all(Array.from({ length: 8 }, () => applyAll(...shuffle())))
  const addresses = ['a@example.com', 'b@example.com', 'c@example.com']
  assert.deepEqual(
    await readSuppressions(),
    addresses.map((address) => ({ address, reason: 'complained' })),
  )
})

test('a lifted suppression stays lifted if the event is repeated, but not after another one', async () => {
  await query('delete from comms_suppression')
  const id = await addMail()
  const [first, second] = [
    eventOf(id, 'bounced', 'Gone@example.com', 'msg_1'),
    eventOf(id, 'bounced', 'gone@example.com', 'msg_2'),
  ]
  await applyAll(first)
  assert.deepEqual(await db.any(filterSuppressed(['x@example.com', 'GONE@example.com'], 'transactional')), [
    { address: 'gone@example.com' },
  ])
  assert.deepEqual(await db.maybeOne(liftSuppression('GONE@EXAMPLE.com', null)), {
    address: 'gone@example.com',
    streams: ['broadcast', 'transactional'],
  })
  assert.equal(await db.maybeOne(liftSuppression('gone@example.com', null)), null)
  await applyAll(first)
  assert.deepEqual(await readSuppressions(), [])
  await applyAll(second)
  assert.equal((await readSuppressions()).length, 1)
})

test('an event about an unknown mail suppresses nothing', async () => {
  await query('delete from comms_suppression')
  await applyAll(eventOf(randomUUID(), 'bounced', 'gone@example.com', 'msg_1'))
  assert.deepEqual(await readSuppressions(), [])
})
