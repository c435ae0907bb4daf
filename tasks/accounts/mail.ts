import { insertAccountMail } from '../../sql/comms.ts'
import { sendOnce } from '../comms/send.ts'
import { refuseSuppressed } from '../comms/suppression.ts'
import type { TaskContext } from '../context.ts'

/** What a mail of an account says. */
export interface Letter {
  readonly subject: string
  readonly text: string
  readonly html: string
}

/**
 * Mails a letter through the ledger of sends: once, however often its job runs. The ledger has its subject and its
 * recipient; what it says, tokens included, is written anew by each attempt and not stored.
 */
export async function mailOnce(ctx: TaskContext, to: string, letter: Letter): Promise<void> {
  const { job, providers } = ctx
  await ctx.db.run(insertAccountMail(job.id, to, letter.subject))
  await sendOnce(ctx, job.id, ({ id, created_ms: dateMs }) => ({
    channel: 'email',
    repeatable: providers.comms.emailRepeatable,
    failed: 'email.failed',
    hand: async (request) => {
      await refuseSuppressed(ctx.db, [to])
      return providers.comms.email({ id, dateMs, to: [to], ...letter }, request)
    },
  }))
}
