import { sendDeletionMail } from '../../tasks/accounts/deletion-mail.task.ts'
import { sendEmailChangeMail } from '../../tasks/accounts/email-change.task.ts'
import { sendInviteMail } from '../../tasks/accounts/invite.task.ts'
import { sendMagicLink } from '../../tasks/accounts/magic-link.task.ts'
import { sendNoticeMail } from '../../tasks/accounts/notice.task.ts'
import { sendPasswordResetMail } from '../../tasks/accounts/password-reset.task.ts'
import { sendVerification } from '../../tasks/accounts/verification.task.ts'
import { addressOf } from '../../tasks/comms/mailbox.ts'
import type { EmailMessage } from '../../tasks/comms/ports.ts'
import type { SecretKeys } from '../../tasks/platform/keys.ts'
import type { TestDatabase } from '../database.ts'
import { TEST_KEYS } from '../keys.ts'
import { createMailContext } from '../tasks/mail-context.ts'

export interface Mail {
  readonly jobId: string
  readonly to: string
  readonly subject: string
  /** The token in the mail, or an empty string. */
  readonly token: string
  readonly text: string
  readonly html: string | undefined
}

const MAIL_TASKS: Readonly<Record<string, { run(context: never, payload: never): Promise<unknown> }>> =
  Object.fromEntries(
    [
      sendDeletionMail,
      sendEmailChangeMail,
      sendInviteMail,
      sendMagicLink,
      sendNoticeMail,
      sendPasswordResetMail,
      sendVerification,
    ].map((task) => [task.name, task]),
  )

/** Returns a function that runs the pending mail jobs in place of a worker and returns the mails. */
export const createMailbox = (database: TestDatabase) => createMailboxOf(database, TEST_KEYS)

/** Like {@link createMailbox}, for a worker with other keys. */
export function createMailboxOf({ db, query }: TestDatabase, keys: SecretKeys) {
  const done = new Set<string>()
  return async (): Promise<Mail[]> => {
    const mails: Mail[] = []
    const jobs = await query(`select id, name, payload from job where name = any($1) order by ordinal`, [
      Object.keys(MAIL_TASKS),
    ])
    for (const { id, name, payload } of jobs as { id: string; name: string; payload: never }[]) {
      if (done.has(id)) continue
      done.add(id)
      const deliver = async ({ to, subject, text = '', html }: EmailMessage): Promise<void> => {
        const token = /token is: (\S+)/.exec(text)?.[1] ?? ''
        mails.push({ jobId: id, to: addressOf(to[0]!), subject, token, text, html })
      }
      const context = createMailContext({ db }, id, { keys, deliver })
      await MAIL_TASKS[name]!.run(context as never, payload)
    }
    return mails
  }
}
