import { insertAccountMail } from '../../sql/comms.ts'
import { takeRequest } from '../../sql/limits.ts'
import { sendOnce } from '../comms/send.ts'
import { refuseSuppressed } from '../comms/suppression.ts'
import type { TaskContext } from '../context.ts'
import type { Email } from './emails.ts'
import { digestOf } from './tokens.ts'

// Nobody needs more, and a mailbox can bear them.
const MAX_UNSOLICITED = 10
const PERIOD_SECONDS = 3600

/**
 * Sends an email through the ledger of sends: once, however often its job runs. The ledger has its subject and its
 * recipient; what it says, tokens included, is written anew by each attempt and not stored.
 */
export async function mailOnce(ctx: TaskContext, to: string, email: Email): Promise<void> {
  const { job, providers } = ctx
  await ctx.db.run(insertAccountMail(job.id, to, email.subject))
  await sendOnce(ctx, job.id, ({ id, created_ms: dateMs }) => ({
    channel: 'email',
    repeatable: providers.comms.emailRepeatable,
    failed: 'email.failed',
    hand: async (request) => {
      await refuseSuppressed(ctx.db, [to])
      return providers.comms.email({ id, dateMs, to: [to], ...email }, request)
    },
  }))
}

/**
 * Sends, as `mailOnce`, what anybody can have sent to an address of somebody else: ten in an hour to each address, or its
 * mailbox could be flooded, from however many clients. What exceeds that is not sent; the log says so.
 */
export async function mailUnsolicited(ctx: TaskContext, to: string, email: Email): Promise<void> {
  // A repeated attempt was counted by the first.
  if (ctx.job.attempt === 1) {
    const address = digestOf(to).toString('hex')
    const limit = takeRequest('unsolicited_mail', address, MAX_UNSOLICITED, PERIOD_SECONDS)
    if ((await ctx.db.one(limit)).wait_ms > 0) {
      ctx.log.warn({ subject: email.subject }, 'Not mailed: the address got ten such mails within an hour')
      return
    }
  }
  await mailOnce(ctx, to, email)
}
