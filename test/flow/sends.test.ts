import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { startProcess } from '../service.ts'
import { startMailServer } from '../standins/smtp.ts'
import { runStorm } from '../standins/storm.ts'
import { createTwilioEnv, startTwilio } from '../standins/twilio.ts'
import { SHORT_LEASE } from './crash.ts'

/** A small version of `npm run bench -- sends`. */

const PER_CHANNEL = 15

const { url, query } = await createTestDatabase()
const [twilio, mail] = await Promise.all([startTwilio(), startMailServer()])
after(() => Promise.all([twilio.stop(), mail.stop()]))
const env = {
  ...createTwilioEnv(twilio.url),
  EMAIL_SMTP_URL: mail.url,
  EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
  AUTH_LEVEL: 'none',
  WORKER_QUEUES: 'comms',
  WORKER_THREADS: '1',
  ...SHORT_LEASE,
}
const edge = await startEdge(url, { env })

test('killed workers duplicate and lose no messages', async (t) => {
  const { tallies, seconds } = await runStorm({
    perChannel: PER_CHANNEL,
    kills: 2,
    faults: { 'cut before': 0.03, 'cut after': 0.06, 'error before': 0.02, 'error after': 0.04, busy: 0.04 },
    seed: 4711,
    twilio,
    mail,
    url: `http://127.0.0.1:${edge.port}`,
    ask: query,
    startWorker: () => startProcess('worker', url, env),
    workers: 3,
    replaced: false,
    deadlineMs: 60_000,
  })
  for (const [channel, tally] of Object.entries(tallies)) {
    t.diagnostic(`${channel}: ${JSON.stringify(tally)}, ${seconds.toFixed(1)} s`)
    assert.deepEqual([tally.doubled, tally.untrue, tally.mistaken], [0, 0, 0], channel)
    assert.equal(tally.sent + tally.unknown + tally.failed + tally.open, PER_CHANNEL)
    assert.ok(tally.sent > PER_CHANNEL / 2, `${tally.sent} of ${PER_CHANNEL} were sent`)
  }
})
