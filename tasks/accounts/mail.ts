import { insertAccountMail } from '../../sql/comms.ts'
import { countRequest } from '../../sql/limits.ts'
import { sendOnce } from '../comms/send.ts'
import { rejectSuppressed } from '../comms/suppression.ts'
import type { TaskContext } from '../context.ts'
import type { Email } from './emails.ts'
import { digestOf } from './tokens.ts'

// More than enough for a real owner, and few enough not to flood a mailbox.
const MAX_UNSOLICITED = 10
const PERIOD_SECONDS = 3600

/**
 * Sends an email through the send ledger: once, however often its job runs. The ledger stores subject and recipient.
 * The body, tokens included, is never stored; each attempt writes it again.
 */
export async function mailOnce(ctx: TaskContext, to: string, email: Email): Promise<void> {
  const { job, providers } = ctx
  await ctx.db.run(insertAccountMail(job.id, to, email.subject))
  await sendOnce(ctx, job.id, ({ id, created_ms: dateMs }) => ({
    channel: 'email',
    isIdempotent: providers.comms.isEmailIdempotent,
    failureCode: 'email.failed',
    submit: async (request) => {
      await rejectSuppressed(ctx.db, [to])
      return providers.comms.email({ id, dateMs, to: [to], ...email }, request)
    },
  }))
}

/**
 * As `mailOnce`, for emails that anyone can trigger to another person's address. Sends at most ten per hour to each
 * address, so that no number of clients can flood its mailbox. Drops and logs the rest.
 */
export async function mailUnsolicited(ctx: TaskContext, to: string, email: Email): Promise<void> {
  // Only the first attempt counts.
  if (ctx.job.attempt === 1) {
    const address = digestOf(to).toString('hex')
    const limit = countRequest('unsolicited_mail', address, MAX_UNSOLICITED, PERIOD_SECONDS)
    if ((await ctx.db.one(limit)).wait_ms > 0) {
      ctx.log.warn(
        { subject: email.subject },
        'Email dropped: the address received 10 such emails within an hour',
      )
      return
    }
  }
  await mailOnce(ctx, to, email)
}
