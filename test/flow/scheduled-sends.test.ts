import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { Client, startProcess } from '../service.ts'
import { startMailServer } from '../standins/smtp.ts'
import { createTwilioEnv, startTwilio } from '../standins/twilio.ts'
import { until } from '../until.ts'
import { SHORT_LEASE } from './crash.ts'

/** Scheduled messages are cancelled at the moment they become due, while workers are killed. */

const PER_CHANNEL = 20
const DUE_MS = 500

const { url, query } = await createTestDatabase()
const [twilio, mail] = await Promise.all([startTwilio(), startMailServer()])
after(() => Promise.all([twilio.stop(), mail.stop()]))
// Slow enough that many messages are in flight when a worker dies.
mail.pace = () => 30
const env = {
  ...createTwilioEnv(twilio.url),
  EMAIL_SMTP_URL: mail.url,
  EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
  AUTH_LEVEL: 'none',
  WORKER_QUEUES: 'comms',
  WORKER_THREADS: '1',
}
const edge = await startEdge(url, { env })
const client = new Client(edge.port)
const startWorker = () => startProcess('worker', url, { ...env, ...SHORT_LEASE })

const postMessage = async (path: string, json: object): Promise<string> => {
  const response = await client.post(`/api/v1/comms${path}`, json)
  assert.equal(response.status, 200)
  return ((await response.json()) as { id: string }).id
}

test('each message is either sent once or cancelled and never sent, whichever worker dies', async (t) => {
  const workers = await Promise.all([startWorker(), startWorker()])
  const send_at = new Date(Date.now() + 3_600_000).toISOString()
  const sent = await Promise.all(
    Array.from({ length: PER_CHANNEL }, async (_, n) => [
      {
        word: `mail-${n}`,
        id: await postMessage('/email/send', {
          to: ['a@example.com'],
          subject: `mail-${n}`,
          text: 't',
          send_at,
        }),
      },
      // Use only four numbers, so that messages to the same number wait for each other.
      {
        word: `text-${n}`,
        id: await postMessage('/sms/send', { to: `+1415555267${n % 4}`, body: `text-${n}`, send_at }),
      },
    ]),
  )
  const all = sent.flat()
  const early = await query(`select count(*)::int as n from comms_send where status = 'scheduled'`)
  assert.equal(early[0]!.n, all.length)
  // Compute the time only now, because requesting all messages takes an unknown time.
  const dueMs = Date.now() + DUE_MS
  await query(
    `with due as (select to_timestamp($1 / 1000.0) as at),
       sends as (update comms_send set send_at = at from due),
       jobs as (update job set run_at = at from due where name like 'comms.%')
     update graphile_worker._private_jobs set run_at = at from due`,
    [dueMs],
  )

  const answers = new Map<string, number>()
  const cancel = async (id: string): Promise<void> => {
    const response = await client.fetch(`/api/v1/comms/sends/${id}`, { method: 'DELETE' })
    answers.set(id, response.status)
  }
  await until('the first message is being sent', () => mail.requests + twilio.requests > 0)
  await Promise.all([workers[0]!.kill(), ...all.filter((_, n) => n % 3 === 0).map(({ id }) => cancel(id))])
  await Promise.all(all.filter((_, n) => n % 3 === 1).map(({ id }) => cancel(id)))
  await workers[1]!.kill()
  await startWorker()

  const rows = await until(
    'all sends have ended',
    async () => {
      const rows = await query(`select id, status, requested_at from comms_send`)
      return rows.every(({ status }) => ['sent', 'unknown', 'cancelled'].includes(status as string)) && rows
    },
    60_000,
  )
  const jobs = await until('all jobs have ended', async () => {
    const jobs = await query(`select s.id, j.status from comms_send s join job j on j.id = s.job_id`)
    return jobs.every(({ status }) => ['done', 'cancelled'].includes(status as string)) && jobs
  })
  const countArrived = (word: string): number =>
    mail.raw.filter((raw) => raw.includes(`Subject: ${word}\r\n`)).length +
    twilio.taken.filter(({ content }) => content === word).length
  const tally = { sent: 0, unknown: 0, cancelled: 0 }
  for (const { id, word } of all) {
    const row = rows.find((one) => one.id === id)!
    const status = row.status as keyof typeof tally
    tally[status]++
    const cancelStatus = answers.get(id)
    assert.equal(status === 'cancelled', cancelStatus === 200, `${word}: ${status}, ${cancelStatus}`)
    assert.ok(cancelStatus === undefined || cancelStatus === 200 || cancelStatus === 409, `${cancelStatus}`)
    assert.equal(jobs.find((one) => one.id === id)!.status, status === 'cancelled' ? 'cancelled' : 'done')
    if (status === 'cancelled') assert.equal(countArrived(word), 0, word)
    else assert.ok((row.requested_at as Date).getTime() >= dueMs - 1, word)
    if (status === 'sent') assert.equal(countArrived(word), 1, word)
    if (status === 'unknown') assert.ok(countArrived(word) <= 1, word)
  }
  t.diagnostic(JSON.stringify(tally))
  assert.ok(tally.sent > 0)
})
