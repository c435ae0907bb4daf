import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { insertSession } from '../../sql/accounts/accounts.ts'
import { recordSessionUse } from '../../sql/accounts/sessions.ts'
import { connect } from '../../sql/connections/driver.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { digestOf } from '../../tasks/accounts/tokens.ts'
import { newAccount, sharedDatabase } from './shared-database.ts'

/** Sessions record the time and the location of their last use. */

const { db, query, url } = await sharedDatabase()
const owner = await newAccount({ query })

async function addSession(): Promise<string> {
  const id = uuidv7()
  const origin = { address: '10.0.0.1', place: 'Oslo', userAgent: null, device: null }
  await db.run(insertSession(id, owner, digestOf(id), 60, origin))
  return id
}

interface SessionUse {
  readonly at: Date | null
  readonly address: string | null
  readonly place: string | null
}
const readUse = async (id: string): Promise<SessionUse> =>
  (
    await query(
      'select last_used_at as at, last_address as address, last_place as place from session where id = $1',
      [id],
    )
  )[0] as unknown as SessionUse
const createUse = (id: string, address: string | null, place: string | null = null) => ({
  id,
  address,
  place,
})

test('the last use is recorded for several sessions in one statement, at most every 30 seconds', async () => {
  const [one, two, unused] = [await addSession(), await addSession(), await addSession()]
  await db.run(
    recordSessionUse([
      createUse(two, '10.0.0.2'),
      createUse(one, '10.0.0.3', 'Rome'),
      createUse(randomUUID(), 'x'),
    ]),
  )
  const noted = await readUse(one)
  assert.ok(noted.at !== null)
  assert.deepEqual([noted.address, noted.place], ['10.0.0.3', 'Rome'])
  assert.equal((await readUse(two)).address, '10.0.0.2')
  assert.deepEqual(await readUse(unused), { at: null, address: null, place: null })
  await db.run(recordSessionUse([createUse(one, '10.0.0.4')]))
  assert.deepEqual(await readUse(one), noted)
  await query(`update session set last_used_at = now() - interval '31 seconds' where id = $1`, [one])
  await db.run(recordSessionUse([createUse(one, '10.0.0.4')]))
  const later = await readUse(one)
  // Both times may fall into the same millisecond.
  assert.ok(later.at! >= noted.at!)
  assert.deepEqual([later.address, later.place], ['10.0.0.4', null])
})

test('the last address and location stay if the new address is unknown', async () => {
  const one = await addSession()
  await db.run(recordSessionUse([createUse(one, '10.0.0.3', 'Rome')]))
  await query(`update session set last_used_at = now() - interval '31 seconds' where id = $1`, [one])
  await db.run(recordSessionUse([createUse(one, null)]))
  const { at, ...where } = await readUse(one)
  assert.ok(Date.now() - at!.getTime() < 30_000)
  assert.deepEqual(where, { address: '10.0.0.3', place: 'Rome' })
})

test('a use is not recorded while another edge records one', async () => {
  const [one, two] = [await addSession(), await addSession()]
  const other = await connect({ url, applicationName: 'another edge' })
  try {
    await other.query('begin')
    await other.query('select from session where id = $1 for no key update', [one])
    await db.run(recordSessionUse([createUse(one, '10.0.0.2'), createUse(two, '10.0.0.2')]))
    assert.equal((await readUse(one)).at, null)
    assert.notEqual((await readUse(two)).at, null)
  } finally {
    await other.end()
  }
})

test('a long address from a hostile header is truncated', async () => {
  const [one, two] = [await addSession(), await addSession()]
  await db.run(
    recordSessionUse([createUse(one, '"\\\'; drop table session; --'), createUse(two, 'ü'.repeat(5000))]),
  )
  assert.equal((await readUse(one)).address, '"\\\'; drop table session; --')
  assert.equal((await readUse(two)).address, 'ü'.repeat(100))
})
