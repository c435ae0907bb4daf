import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { applyEvents, insertSend, type SendEvent } from '../../sql/comms.ts'
import { liftSuppression, suppressedAmong } from '../../sql/suppressions.ts'
import { chanceOf } from '../chance.ts'
import { testDatabase } from '../database.ts'
import { runs, SEED } from '../runs.ts'

/** The list of suppressed addresses is the same for any order of events, and follows an admin's changes. */

const { db, query } = await testDatabase()

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
  suppresses: { address, eventId },
})
const apply = (...events: SendEvent[]) => db.one(applyEvents(events))
const list = () => query('select address, reason from comms_suppression order by address')

test('events lead to the same list in any order, repeated, and in any batches', async () => {
  const chance = chanceOf(SEED)
  for (let run = 0; run < runs(30).numRuns; run++) {
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
    for (const { status, suppresses } of events) {
      const address = suppresses!.address.toLowerCase()
      if (expected.get(address) !== 'complained') expected.set(address, status)
    }
    const order = [...events, ...events.filter(() => chance.happens(0.5))]
      .map((event) => ({ event, place: chance.next() }))
      .sort((a, b) => a.place - b.place)
      .map(({ event }) => event)
    while (order.length > 0) await apply(...order.splice(0, chance.between(1, order.length)))
    assert.deepEqual(
      await list(),
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
  const chance = chanceOf(SEED)
  const shuffle = () => events.toSorted(() => chance.next() - 0.5)
  await Promise.all(Array.from({ length: 8 }, () => apply(...shuffle())))
  const addresses = ['a@example.com', 'b@example.com', 'c@example.com']
  assert.deepEqual(
    await list(),
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
  await apply(first)
  assert.deepEqual(await db.any(suppressedAmong(['x@example.com', 'GONE@example.com'])), [
    { address: 'gone@example.com' },
  ])
  assert.deepEqual(await db.maybeOne(liftSuppression('GONE@EXAMPLE.com')), { address: 'gone@example.com' })
  assert.equal(await db.maybeOne(liftSuppression('gone@example.com')), null)
  await apply(first)
  assert.deepEqual(await list(), [])
  await apply(second)
  assert.equal((await list()).length, 1)
})

test('an event about an unknown mail suppresses nothing', async () => {
  await query('delete from comms_suppression')
  await apply(eventOf(randomUUID(), 'bounced', 'gone@example.com', 'msg_1'))
  assert.deepEqual(await list(), [])
})
