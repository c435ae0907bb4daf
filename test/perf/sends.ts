import { startMailServer } from '../standins/smtp.ts'
import { type Channel, runStorm, type Tally } from '../standins/storm.ts'
import { createTwilioEnv, startTwilio } from '../standins/twilio.ts'
import type { Finding, Measured } from './report.ts'
import { queryRows, type Stack } from './stack.ts'

const PER_CHANNEL = Number(process.env.BENCH_SENDS ?? 1000)
const KILLS = Number(process.env.BENCH_KILLS ?? 20)
const SEED = Number(process.env.BENCH_SEED ?? 1)

const FAULTS = {
  'hang before': 0.005,
  'hang after': 0.01,
  'cut before': 0.01,
  'cut after': 0.02,
  'error before': 0.01,
  'error after': 0.01,
  busy: 0.02,
} as const

/**
 * Sends messages on all channels while workers are killed and providers fail, and counts duplicated and lost messages.
 */
export async function measureSends(stack: Stack): Promise<Measured> {
  const [twilio, mail] = await Promise.all([startTwilio(), startMailServer()])
  try {
    const url = await stack.createDatabase()
    const env = {
      ...createTwilioEnv(twilio.url),
      EMAIL_SMTP_URL: mail.url,
      EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
      AUTH_LEVEL: 'none',
      WORKER_QUEUES: 'comms',
      // Hides log lines about killed workers, which are expected.
      LOG_LEVEL: 'fatal',
    }
    const edge = await stack.edge(url, env)
    const { tallies, kills, seconds } = await runStorm({
      perChannel: PER_CHANNEL,
      kills: KILLS,
      faults: FAULTS,
      seed: SEED,
      twilio,
      mail,
      url: `http://127.0.0.1:${edge.port}`,
      ask: (text, values) => queryRows(url, text, values),
      startWorker: async () => {
        const { process: child } = await stack.worker(url, env)
        return {
          kill: () =>
            new Promise((resolve) => {
              child.once('exit', () => resolve())
              child.kill('SIGKILL')
            }),
        }
      },
      workers: 2,
      replaced: true,
      deadlineMs: 900_000,
    })
    const findings = Object.entries(tallies).flatMap(([channel, tally]) =>
      findingsOf(channel as Channel, tally),
    )
    const failures = await queryRows(
      url,
      `select name, error_code, count(*)::int as count from job where status = 'failed' group by 1, 2 order by 1, 2`,
    )
    return {
      rounds: 1,
      findings,
      notes: notesOf(kills, seconds, tallies),
      details: { tallies, failures, FAULTS, SEED },
    }
  } finally {
    await Promise.all([twilio.stop(), mail.stop()])
  }
}

function findingsOf(channel: Channel, tally: Tally): Finding[] {
  const none = { of: 'value', atMost: 0 } as const
  const finding = (name: string, value: number, target?: typeof none): Finding => ({
    name: `${channel}: ${name}`,
    unit: `of ${tally.asked}`,
    values: [value],
    ...(target === undefined ? {} : { target }),
  })
  return [
    finding('doubled', tally.doubled, none),
    finding('without a row, or with a wrong one', tally.untrue, none),
    finding('with the id of another message', tally.mistaken, none),
    finding('sent', tally.sent),
    finding('unknown', tally.unknown),
    finding('failed', tally.failed + tally.open),
  ]
}

function notesOf(kills: number, seconds: number, tallies: Readonly<Record<Channel, Tally>>): string[] {
  const taken = Object.entries(tallies).map(([channel, { unknownTaken }]) => `${unknownTaken} (${channel})`)
  return [
    `${kills} workers were killed at random moments; ${seconds.toFixed(0)} s in total.`,
    `Of the unknown sends, the providers had accepted ${taken.join(', ')}.`,
  ]
}
