import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { insertSend } from '../../sql/comms/sends.ts'
import { fail } from '../../sql/errors.ts'
import { sendEmail } from '../../tasks/comms/email.task.ts'
import { settleSends } from '../../tasks/comms/settle.task.ts'
import { sendSms } from '../../tasks/comms/sms.task.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'
import { createBench, createUnknown, type SendBench } from './comms-help.ts'

/** A scheduled task determines the outcome of sends that no job handles any more. */

const database = await createTestDatabase()
const { db, query } = database

const run = (one: SendBench) => settleSends.run(one.context, {})
const readStatus = async (id: string) =>
  (await query('select status, error_code, detail from comms_send where id = $1', [id]))[0]!

async function addUnknownSms(to: string): Promise<SendBench> {
  const one = await createBench(database, 'sms', [to])
  one.behaviour = createUnknown()
  await sendSms.run(one.context, { send_id: one.id, to, segments: 1 })
  return one
}

test('unknown sends are found at the provider later, and each message answers one send', async () => {
  const to = '+14155550001'
  const [first, second] = [await addUnknownSms(to), await addUnknownSms(to)]
  const found = { providerId: `SM${first.id}`, status: 'delivered' }
  first.list = [found]
  assert.equal((await run(first)).found, 1)
  const rows = await query('select status, provider_id from comms_send where id = any($1) order by status', [
    [first.id, second.id],
  ])
  assert.deepEqual(rows, [
    { status: 'sent', provider_id: found.providerId },
    { status: 'unknown', provider_id: null },
  ])
  assert.equal((await run(first)).found, 0)
})

test('a send that the provider has is found among many that it does not', async () => {
  await query(`delete from comms_send`)
  const oldest = await addUnknownSms('+14155550003')
  for (let n = 0; n < 60; n++) await addUnknownSms(`+1415555${1000 + n}`)
  await query('update comms_send set id = $2 where id = $1', [
    oldest.id,
    '00000000-0000-7000-8000-000000000000',
  ])
  const one = await createBench(database, 'sms')
  Object.assign(one.context.providers.comms, {
    findSms: async ({ to }: { to: string }) =>
      to === '+14155550003' ? [{ providerId: 'SM3', status: 'delivered' }] : [],
  })
  await until('the send is found', async () => (await run(one)).found === 1)
})

test('sends stay unknown if they cannot be looked up, are mails, or are old', async () => {
  await query(`delete from comms_send`)
  const one = await addUnknownSms('+14155550002')
  one.list = fail('telephony.failed', { reason: 'x' })
  assert.equal((await run(one)).found, 0)
  const mail = await createBench(database, 'email')
  mail.behaviour = createUnknown()
  await sendEmail.run(mail.context, { send_id: mail.id })
  one.list = [{ providerId: 'SM1', status: 'sent' }]
  await query(`update comms_send set requested_at = now() - interval '25 hours' where id = $1`, [one.id])
  assert.equal((await run(one)).found, 0)
  assert.equal((await readStatus(one.id)).status, 'unknown')
})

test('a send without an active job is closed', async () => {
  await query(`delete from comms_send`)
  const addJob = async (status: string, age = '1 minute'): Promise<{ id: string; send: string }> => {
    const [id, send] = [randomUUID(), randomUUID()]
    const end = ['done', 'failed', 'cancelled'].includes(status) ? 'now()' : 'null'
    await query(
      `insert into job (id, name, queue, mailbox, payload, status, max_tries, finished_at, lease_id, error_code)
      values ($1::uuid, 'comms.sms', 'comms', 'sms:' || $1::text, '{}', $2, 3, ${end}, case when $2 = 'running' then $1::uuid end,
        case when $2 = 'failed' then 'job.timeout' end)`,
      [id, status],
    )
    const fields = {
      id: send,
      channel: 'sms',
      ownerId: null,
      jobId: id,
      recipients: ['+1'],
      message: {},
    } as const
    await db.run(insertSend(fields))
    await query(`update comms_send set created_at = now() - $2::interval where id = $1`, [send, age])
    return { id, send }
  }
  const begin = (send: string) =>
    query(`update comms_send set status = 'sending', requested_at = now() where id = $1`, [send])
  const [running, waiting, cancelled, timedOut, fresh, gone] = [
    await addJob('running'),
    await addJob('available'),
    await addJob('cancelled'),
    await addJob('failed'),
    await addJob('cancelled', '0 s'),
    await addJob('available'),
  ]
  await begin(running.send)
  await begin(timedOut.send)
  await query('delete from job where id = $1', [gone.id])
  const one = await createBench(database, 'sms')
  assert.equal((await run(one)).closed, 3)
  const untouched = [running.send, waiting.send, fresh.send].map(
    async (send) => (await readStatus(send)).status,
  )
  assert.deepEqual(await Promise.all(untouched), ['sending', 'queued', 'queued'])
  const detail = 'The job ended before a request went out'
  for (const { send } of [cancelled, gone])
    assert.deepEqual(await readStatus(send), { status: 'failed', error_code: 'job.cancelled', detail })
  assert.deepEqual(await readStatus(timedOut.send), {
    status: 'unknown',
    error_code: null,
    detail: 'The job ended while a request was under way',
  })
})
