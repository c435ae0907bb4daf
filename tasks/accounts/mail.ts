import { insertAccountMail } from '../../sql/comms.ts'
import { sendOnce } from '../comms/send.ts'
import { refuseSuppressed } from '../comms/suppression.ts'
import type { TaskContext } from '../context.ts'
import type { Email } from './emails.ts'

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
