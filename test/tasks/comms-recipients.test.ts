import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Failure, fail } from '../../sql/errors.ts'
import { sendEmail } from '../../tasks/comms/email.task.ts'
import { createTestDatabase } from '../database.ts'
import { createAccepted, createBench, type SendBench } from './comms-help.ts'

/** Each recipient of an email has an outcome of its own. */

const database = await createTestDatabase()

describe('a mail that the server refuses for some recipients', () => {
  const run = ({ context, id }: SendBench) => sendEmail.run(context, { send_id: id })
  const ADDRESSES = ['a@example.com', 'b@example.com', 'c@example.com']
  const make = () => createBench(database, 'email', ADDRESSES)
  type Status = 'sent' | 'deferred' | 'failed'
  const refuse = (...statuses: readonly (readonly [address: string, status: Status])[]) =>
    ({
      kind: 'partly',
      recipients: statuses.map(([address, status]) => ({
        address,
        status,
        detail: status === 'sent' ? null : `SMTP status ${status === 'failed' ? 550 : 451}`,
      })),
    }) as const
  const readRecipients = async ({ id }: SendBench) => {
    const [row] = await database.query(
      'select status, comms_recipients_json(s) as json from comms_send s where id = $1',
      [id],
    )
    const recipients = row!.json as { status: string; detail: string | null }[]
    return [row!.status, ...recipients.map(({ status }) => status)]
  }

  test('is tried again for the deferred ones alone', async () => {
    const one = await make()
    one.behaviour = refuse([ADDRESSES[0]!, 'sent'], [ADDRESSES[1]!, 'deferred'], [ADDRESSES[2]!, 'failed'])
    await assert.rejects(run(one), { code: 'email.failed', retry: 'free' })
    assert.deepEqual(await readRecipients(one), ['queued', 'sent', 'queued', 'failed'])
    one.behaviour = createAccepted(null)
    const { status, message } = await run(one)
    assert.deepEqual(one.pending, [undefined, [ADDRESSES[1]]])
    assert.deepEqual(await readRecipients(one), ['sent', 'sent', 'sent', 'failed'])
    assert.deepEqual([status, message], ['sent', 'The mail server accepted the message'])
  })

  for (const refusal of [
    fail('email.refused', { reason: 'x' }),
    refuse([ADDRESSES[1]!, 'failed'], [ADDRESSES[2]!, 'failed']),
  ])
    test(`is sent if the deferred ones are refused later (${refusal instanceof Failure ? 'all' : 'each'})`, async () => {
      const one = await make()
      one.behaviour = refuse(
        [ADDRESSES[0]!, 'sent'],
        [ADDRESSES[1]!, 'deferred'],
        [ADDRESSES[2]!, 'deferred'],
      )
      await assert.rejects(run(one), { code: 'email.failed', retry: 'free' })
      // A server that refuses all recipients gets no message.
      one.beginsNothing = true
      one.behaviour = refusal
      assert.equal((await run(one)).status, 'sent')
      assert.deepEqual(await readRecipients(one), ['sent', 'sent', 'failed', 'failed'])
      assert.equal(one.pending.length, 2)
    })

  test('is sent if one of them has it', async () => {
    const one = await make()
    one.behaviour = refuse([ADDRESSES[0]!, 'failed'], [ADDRESSES[1]!, 'sent'], [ADDRESSES[2]!, 'failed'])
    assert.equal(
      (await run(one)).message,
      'The mail server accepted the message, but not for a@example.com, c@example.com',
    )
    assert.deepEqual(await readRecipients(one), ['sent', 'failed', 'sent', 'failed'])
  })

  test('is failed if none of them has it', async () => {
    const one = await make()
    one.behaviour = refuse([ADDRESSES[0]!, 'failed'], [ADDRESSES[1]!, 'failed'], [ADDRESSES[2]!, 'failed'])
    await assert.rejects(run(one), { code: 'email.refused', retryable: false })
    assert.deepEqual(await readRecipients(one), ['failed', 'failed', 'failed', 'failed'])
  })

  test('is sent when the time of the deferred ones is over', async () => {
    const one = await make()
    one.behaviour = refuse([ADDRESSES[0]!, 'sent'], [ADDRESSES[1]!, 'deferred'], [ADDRESSES[2]!, 'sent'])
    await one.age(49)
    assert.equal((await run(one)).status, 'sent')
    assert.deepEqual(await readRecipients(one), ['sent', 'sent', 'failed', 'sent'])
  })
})
