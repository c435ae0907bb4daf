import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { Failure, fail } from '../../sql/errors.ts'
import { placeCall } from '../../tasks/comms/call.task.ts'
import { sendEmail } from '../../tasks/comms/email.task.ts'
import type { SubmitResult } from '../../tasks/comms/ports.ts'
import { sendSms } from '../../tasks/comms/sms.task.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'
import { createAccepted, createBench, createUnknown, type SendBench, WorkerDeath } from './comms-help.ts'

/** A message is sent at most once, whatever happens to the attempts to send it. */

const database = await createTestDatabase()
const TO = '+14155552671'
let numbers = 0
const createNumber = (): string => `+1415555${String(++numbers).padStart(4, '0')}`

const CHANNELS = {
  email: {
    make: () => createBench(database, 'email'),
    run: ({ context, id }: SendBench) => sendEmail.run(context, { send_id: id }),
    failed: () => fail('email.failed', { reason: 'x' }),
    refused: () => fail('email.refused', { reason: 'x' }),
    looks: false,
  },
  sms: {
    make: () => createBench(database, 'sms', [createNumber()]),
    run: ({ context, id }: SendBench) => sendSms.run(context, { send_id: id, to: TO, segments: 2 }),
    failed: () => fail('telephony.failed', { reason: 'x' }),
    refused: () => fail('telephony.refused', { reason: 'x' }),
    looks: true,
  },
  call: {
    make: () => createBench(database, 'call', [createNumber()]),
    run: ({ context, id }: SendBench) => placeCall.run(context, { send_id: id, to: TO }),
    failed: () => fail('telephony.failed', { reason: 'x' }),
    refused: () => fail('telephony.refused', { reason: 'x' }),
    looks: true,
  },
}

for (const [name, { make, run, failed, refused, looks }] of Object.entries(CHANNELS)) {
  const expectFailure = async (one: SendBench): Promise<unknown> =>
    run(one).then(
      (result) => assert.fail(`It did not fail: ${inspect(result)}`),
      (error: unknown) => error,
    )

  describe(name, () => {
    test('is sent once, and a repeated attempt returns the same answer', async () => {
      const one = await make()
      const first = await run(one)
      assert.deepEqual([one.requests, (await one.row()).status], [1, 'sent'])
      assert.deepEqual(await run(one), first)
      assert.deepEqual([one.requests, (await one.row()).requests], [1, 1])
      assert.equal((await one.row()).message, null, 'the content of a sent message is deleted')
    })

    test('waits for its next attempt if it was certainly not accepted, and costs no try', async () => {
      const one = await make()
      one.behaviour = failed()
      const error = (await expectFailure(one)) as Failure
      const { code, detail } = one.behaviour as Failure
      assert.deepEqual([error.code, error.detail, error.retry], [code, detail, 'free'])
      assert.ok(error.retryAfter! >= 0.75 && error.retryAfter! <= 1.25)
      const row = await one.row()
      assert.deepEqual([row.status, row.error_code, row.detail], ['queued', null, detail])
      assert.ok(row.delay! > 0 && row.delay! <= 1.25)
      one.behaviour = createAccepted()
      await run(one)
      const { status, delay } = await one.row()
      assert.deepEqual([one.requests, status, delay], [2, 'sent', null])
    })

    test('waits for as long as the provider asks', async () => {
      const one = await make()
      one.behaviour = fail('provider.paused', { provider: 'The provider' }, { retryAfter: 300 })
      assert.equal(((await expectFailure(one)) as Failure).retryAfter, 300)
      assert.equal((await one.row()).status, 'queued')
    })

    test('waits until its rate allows the next request, however many attempts there were', async () => {
      const one = await make()
      Object.assign(one.context.job, { attempt: 30 })
      one.behaviour = fail(
        'provider.rate_limited',
        { setting: 'RATE_LIMIT', seconds: 1 },
        { retryAfter: 0.25 },
      )
      const error = (await expectFailure(one)) as Failure
      assert.deepEqual([error.code, error.retry, error.retryAfter], ['provider.rate_limited', 'free', 0.25])
      const row = await one.row()
      assert.deepEqual(
        [row.status, row.detail],
        ['queued', 'RATE_LIMIT allows the next request to the provider in 1 s'],
      )
      assert.ok(row.delay! <= 0.25)
    })

    test('waits for at most an hour or a 48th of its time, however many attempts there were', async () => {
      const one = await make()
      Object.assign(one.context.job, { attempt: 30 })
      one.behaviour = failed()
      const longest = name === 'email' ? 3600 : 300
      const { retryAfter } = (await expectFailure(one)) as Failure
      assert.ok(retryAfter! >= longest * 0.75 && retryAfter! <= longest * 1.25, `${retryAfter} s`)
    })

    test('is failed when its time is over', async () => {
      const one = await make()
      one.behaviour = failed()
      const hours = name === 'email' ? 48 : 4
      await one.age(hours - 1)
      assert.equal(((await expectFailure(one)) as Failure).retry, 'free')
      await one.age(2)
      const error = (await expectFailure(one)) as Failure
      const row = await one.row()
      assert.deepEqual([error.retry, row.status, row.error_code], ['never', 'failed', error.code])
    })

    test('stores the rejection in the ledger', async () => {
      const one = await make()
      one.behaviour = refused()
      assert.equal(await expectFailure(one), one.behaviour)
      assert.deepEqual([(await one.row()).status, one.lookups], ['failed', 0])
    })

    test('is sent by the next attempt if the worker dies before the request', async () => {
      const one = await make()
      one.behaviour = 'dies before'
      assert.ok((await expectFailure(one)) instanceof WorkerDeath)
      assert.deepEqual([(await one.row()).status, (await one.row()).requests], ['queued', 0])
      one.behaviour = createAccepted()
      await run(one)
      assert.equal(one.requests, 1)
    })

    test('is not sent again if the worker dies during the request', async () => {
      const one = await make()
      one.behaviour = 'dies'
      assert.ok((await expectFailure(one)) instanceof WorkerDeath)
      assert.equal((await one.row()).status, 'sending')
      one.behaviour = createAccepted()
      const result = await run(one)
      assert.deepEqual([one.requests, result.status], [1, 'unknown'])
      assert.match(result.message, /outcome of the send is unknown: .* not retried/)
      assert.equal((await one.row()).status, 'unknown')
      assert.deepEqual(await run(one), result, 'and stays so')
      assert.equal(one.requests, 1)
      if ('sid' in result) assert.equal(result.sid, null)
    })

    test('is unknown if it may have been accepted, and is not sent again', async () => {
      const one = await make()
      one.behaviour = createUnknown()
      assert.equal((await run(one)).status, 'unknown')
      assert.deepEqual([one.requests, one.lookups], [1, looks ? 3 : 0])
      assert.notEqual((await one.row()).message, null, 'a look-up later needs it')
    })

    test('is not sent by a superseded attempt', async () => {
      const one = await make()
      one.isSuperseded = true
      const error = await expectFailure(one)
      assert.ok(error instanceof Failure && error.code === 'job.superseded')
      assert.deepEqual([one.requests, (await one.row()).status], [0, 'queued'])
    })

    test('is unknown if cancelled during the request, and retried if stopped', async () => {
      const cancelled = await make()
      cancelled.behaviour = createUnknown()
      cancelled.abort.abort('cancelled')
      assert.equal((await run(cancelled)).status, 'unknown')
      const stopped = await make()
      stopped.behaviour = createUnknown()
      stopped.abort.abort('stopping')
      assert.equal(await expectFailure(stopped), 'stopping')
      assert.equal((await stopped.row()).status, 'sending')
    })

    test('is sent by the next attempt if the first one reports late that it did not begin', async () => {
      const one = await make()
      const [begins, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const answer = Promise.withResolvers<SubmitResult>()
      const { context } = one
      // The database fails while the first attempt begins its request, and works again once the second attempt has
      // begun its own.
      const first = {
        ...context,
        db: { ...context.db, run: async (query: never) => held.promise.then(() => context.db.run(query)) },
        runFenced: () => {
          begins.resolve()
          return Promise.reject(fail('database.down'))
        },
      } as SendBench['context']
      const late = expectFailure({ ...one, context: first })
      await begins.promise
      const second = { ...context, job: { ...context.job, attempt: 2 } }
      one.behaviour = answer.promise
      const next = run({ ...one, context: second })
      await until('the next request has begun', async () => (await one.row()).status === 'sending')
      held.resolve()
      assert.ok((await late) instanceof Failure)
      assert.equal((await one.row()).status, 'sending')
      answer.resolve(createAccepted())
      await next
      const { status, requests } = await one.row()
      assert.deepEqual([status, requests], ['sent', 1])
    })

    test('is sent after all if the answer arrives late, at an attempt that was given up', async () => {
      const one = await make()
      const answer = Promise.withResolvers<SubmitResult>()
      one.behaviour = answer.promise
      const frozen = run(one)
      await until('the request has begun', async () => (await one.row()).status === 'sending')
      // Another worker claims the job and cannot determine the outcome.
      assert.equal((await run(one)).status, 'unknown')
      answer.resolve(createAccepted())
      assert.notEqual((await frozen).status, 'unknown')
      assert.deepEqual([(await one.row()).status, one.requests], ['sent', 1])
      assert.notEqual((await run(one)).status, 'unknown')
    })
  })

  if (!looks) continue
  const made = (providerId: string) => ({ providerId, status: 'delivered' })
  describe(`${name}, with a lookup`, () => {
    test('is found after a crash', async () => {
      const one = await make()
      one.behaviour = 'dies'
      await expectFailure(one)
      one.list = [made(`X${one.id}`)]
      const result = await run(one)
      assert.deepEqual([result.status, 'sid' in result && result.sid], ['delivered', `X${one.id}`])
      assert.deepEqual([one.requests, one.lookups, (await one.row()).status], [1, 1, 'sent'])
    })

    test('is found after a timeout, also late', async () => {
      const one = await make()
      one.behaviour = createUnknown()
      one.list = (look) => (look < 2 ? [] : [made(`X${one.id}`)])
      assert.equal((await run(one)).status, 'delivered')
      assert.equal(one.lookups, 2)
    })

    test('is sent if the superseded attempt learns meanwhile that it was not accepted', async () => {
      const one = await make()
      const answer = Promise.withResolvers<SubmitResult>()
      one.behaviour = answer.promise
      const frozen = expectFailure(one)
      await until('the request has begun', async () => (await one.row()).status === 'sending')
      one.behaviour = createAccepted(`X${one.id}`)
      one.list = async (look) => {
        if (look === 1) answer.reject(failed())
        await until('the outcome is known', async () => (await one.row()).status !== 'sending')
        return []
      }
      const result = await run(one)
      assert.equal('sid' in result && result.sid, `X${one.id}`)
      assert.deepEqual([one.requests, (await one.row()).status], [2, 'sent'])
      assert.ok((await frozen) instanceof Failure)
    })

    test('does not match a message that answered another send', async () => {
      const first = await make()
      first.behaviour = createAccepted(`X${first.id}`)
      await run(first)
      const [{ recipients }] = (await database.query('select recipients from comms_send where id = $1', [
        first.id,
      ])) as [{ recipients: string[] }]
      const second = await createBench(database, name as 'sms' | 'call', recipients)
      second.behaviour = createUnknown()
      second.list = [made(`X${first.id}`)]
      assert.equal((await run(second)).status, 'unknown')
      second.behaviour = createAccepted()
      const third = await createBench(database, name as 'sms' | 'call', recipients)
      third.behaviour = createUnknown()
      third.list = [made(`X${first.id}`), made(`X${third.id}`), made('later')]
      const result = await run(third)
      assert.equal('sid' in result && result.sid, `X${third.id}`)
    })

    test('is sent again after an answered failure if the provider does not have it', async () => {
      const one = await make()
      one.behaviour = createUnknown(true)
      const error = await expectFailure(one)
      assert.ok(error instanceof Failure && error.code === 'telephony.failed' && error.retryable)
      assert.deepEqual([one.lookups, (await one.row()).status], [3, 'queued'])
      one.behaviour = createAccepted()
      await run(one)
      assert.equal(one.requests, 2)
    })

    test('waits after an answered failure for as long as the provider asks', async () => {
      const one = await make()
      one.behaviour = { kind: 'unknown', reason: 'HTTP status 503', answered: true, retryAfter: 600 }
      const error = await expectFailure(one)
      assert.ok(error instanceof Failure && error.retryAfter === 600, inspect(error))
    })

    test('is sent after an answered failure if the provider has it', async () => {
      const one = await make()
      one.behaviour = createUnknown(true)
      one.list = [made(`X${one.id}`)]
      assert.equal((await run(one)).status, 'delivered')
      assert.equal(one.requests, 1)
    })

    test('is unknown if the provider cannot be asked', async () => {
      const one = await make()
      one.behaviour = createUnknown()
      one.list = fail('telephony.failed', { reason: 'x' })
      assert.equal((await run(one)).status, 'unknown')
      assert.deepEqual([one.requests, one.lookups], [1, 3])
    })
  })
}

test('mail to an address that has bounced meanwhile is rejected before it is sent', async () => {
  const { make, run } = CHANNELS.email
  const one = await make()
  await database.query(
    `insert into comms_suppression (address, reason, send_id) values ('a@example.com', 'bounced', $1)`,
    [one.id],
  )
  await assert.rejects(run(one), { code: 'email.suppressed', retryable: false })
  const { status, error_code, requests } = await one.row()
  assert.deepEqual([status, error_code, requests, one.requests], ['failed', 'email.suppressed', 0, 0])
  await database.query('delete from comms_suppression')
  await run(one)
  assert.deepEqual([(await one.row()).status, one.requests], ['sent', 1])
})

describe('a mail server that recognizes repeated mails', () => {
  const { make, run } = CHANNELS.email
  const makeRepeatable = async (): Promise<SendBench> => Object.assign(await make(), { isRepeatable: true })

  test('gets the mail again after a crash and after a timeout', async () => {
    const one = await makeRepeatable()
    one.behaviour = 'dies'
    await assert.rejects(run(one), WorkerDeath)
    one.behaviour = createUnknown()
    await assert.rejects(run(one), (error) => error instanceof Failure && error.retryable)
    assert.equal((await one.row()).status, 'sending')
    one.behaviour = createAccepted(null)
    assert.equal((await run(one)).status, 'sent')
    assert.deepEqual([one.requests, (await one.row()).requests], [3, 3])
  })

  test('leaves an earlier mail unknown if it does not answer any more', async () => {
    const one = await makeRepeatable()
    one.behaviour = createUnknown()
    await assert.rejects(run(one), Failure)
    one.behaviour = fail('email.failed', { reason: 'ECONNREFUSED' })
    await assert.rejects(run(one), Failure)
    assert.equal((await one.row()).status, 'sending', 'not failed: the first request may have been taken')
  })
})
