import { insertAccountMail } from '../../sql/comms/sends.ts'
import { findTemplate } from '../../sql/comms/templates.ts'
import { countRequest } from '../../sql/limits/limits.ts'
import { sendOnce } from '../comms/send.ts'
import { rejectSuppressedAddresses } from '../comms/suppression.ts'
import type { TaskContext } from '../context.ts'
import { renderAccountTemplate } from './account-templates.ts'
import type { Email } from './emails.ts'
import { digestOf } from './tokens.ts'

// Maximum number of unsolicited emails per address and hour: real owners rarely reach it, and it is too low to flood a
// mailbox.
const MAX_UNSOLICITED_MAILS = 10
const UNSOLICITED_PERIOD_SECONDS = 3600

/**
 * Sends an email through the send ledger, only once even if its job runs again. The ledger stores only the subject and
 * the recipient, because the body may contain tokens. Each attempt builds the body again. An email with a token is
 * retried until its token expires, after `tokenSeconds`.
 */
export async function mailOnce(
  ctx: TaskContext,
  to: string,
  email: Email,
  tokenSeconds?: number,
): Promise<void> {
  const { job, providers } = ctx
  const message = await chooseText(ctx, email)
  await ctx.db.run(insertAccountMail(job.id, to, message.subject))
  await sendOnce(ctx, job.id, ({ id, created_ms: dateMs }) => ({
    channel: 'email',
    isIdempotent: providers.comms.isEmailIdempotent,
    failureCode: 'email.failed',
    retryMs: tokenSeconds === undefined ? ctx.settings.email.retryMs : tokenSeconds * 1000,
    submit: async (request) => {
      await rejectSuppressedAddresses(ctx.db, [to], 'account')
      return providers.comms.email({ id, dateMs, to: [to], ...message }, { ...request, isUrgent: true })
    },
  }))
}

interface Text {
  readonly subject: string
  readonly text?: string
  readonly html?: string
}

/** Returns the text of the stored template, or the built-in text if there is none or it cannot be rendered. */
async function chooseText({ db, log }: TaskContext, email: Email): Promise<Text> {
  const { template: name, values, subject, text, html } = email
  const builtIn = { subject, text, html }
  const stored = await db.maybeOne(findTemplate(name))
  if (stored === null) return builtIn
  const rendered = renderAccountTemplate(stored, values)
  if ('problems' in rendered) {
    log.warn({ template: name, problems: rendered.problems }, 'The template of an account email was not used')
    return builtIn
  }
  return {
    subject: rendered.subject!,
    ...(rendered.text === null ? {} : { text: rendered.text }),
    ...(rendered.html === null ? {} : { html: rendered.html }),
  }
}

/**
 * Sends an email like `mailOnce`, for emails that anyone can trigger to another person's address. Each address gets at
 * most ten per hour, so that many clients together cannot flood a mailbox. Further emails are dropped and logged.
 */
export async function mailUnsolicited(
  ctx: TaskContext,
  to: string,
  email: Email,
  tokenSeconds?: number,
): Promise<void> {
  // Count only the first attempt of a job.
  if (ctx.job.attempt === 1) {
    const address = digestOf(to).toString('hex')
    const limit = countRequest('unsolicited_mail', address, MAX_UNSOLICITED_MAILS, UNSOLICITED_PERIOD_SECONDS)
    if ((await ctx.db.one(limit)).wait_ms > 0) {
      ctx.log.warn(
        { subject: email.subject },
        'Email dropped: the address received 10 such emails within an hour',
      )
      return
    }
  }
  await mailOnce(ctx, to, email, tokenSeconds)
}
