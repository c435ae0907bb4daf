import { after } from 'node:test'
import type { TestDatabase } from '../database.ts'
import {
  createResendDomain,
  KEY,
  type ResendStandIn,
  startResend,
  WEBHOOK_SECRET,
} from '../standins/resend.ts'
import { type MailStandIn, startMailServer } from '../standins/smtp.ts'
import { createTwilioEnv, startTwilio, type TwilioStandIn } from '../standins/twilio.ts'
import { startOwnWorker } from './own-worker.ts'

/** Stand-ins for the three providers, and the settings that point to them. */
export interface ProviderStandIns {
  readonly twilio: TwilioStandIn
  readonly resend: ResendStandIn
  readonly mail: MailStandIn
  readonly env: Readonly<Record<string, string>>
}

/** Starts the stand-ins with `example.com` as a verified domain. They stop after the test file. */
export async function startProviderStandIns(): Promise<ProviderStandIns> {
  const [twilio, resend, mail] = await Promise.all([startTwilio(), startResend(), startMailServer()])
  resend.domains.push(createResendDomain('example.com'), createResendDomain('new.example', 'pending'))
  after(() => Promise.all([twilio.stop(), resend.stop(), mail.stop()]))
  const env = {
    ...createTwilioEnv(twilio.url),
    EMAIL_SMTP_URL: mail.url,
    EMAIL_PROVIDER_API_KEY: KEY,
    EMAIL_PROVIDER_WEBHOOK_SECRET: WEBHOOK_SECRET,
    EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
    EMAIL_PROVIDER_API_BASE_URL: resend.url,
  }
  return { twilio, resend, mail, env }
}

/** Reschedules a message to be due in `ms`. */
export async function makeDue(query: TestDatabase['query'], id: string, ms = 0): Promise<void> {
  const [row] = await query(
    `with moved as (update comms_send set send_at = now() + make_interval(secs => $2 / 1000.0) where id = $1 returning job_id, send_at)
     update job set run_at = send_at from moved where job.id = job_id returning job_id`,
    [id, ms],
  )
  await query('select job_deliver(array[$1::uuid])', [row!.job_id])
}

/** Starts a worker for messages on a database. The worker stops after the test file. */
export async function startMessageWorker(url: string, env: Readonly<Record<string, string>>): Promise<void> {
  await startOwnWorker(url, 'comms', env)
}
