import type { MakeArea } from '../area.ts'
import { findMissingOrDuplicate } from '../area.ts'

/** Registers accounts, resets passwords with their mails, and starts sessions. */
export const accounts: MakeArea = (admin) => {
  const emails: string[] = []
  const password = 'correct horse battery'

  return {
    act: async () => {
      const anonymous = admin.withToken('')
      const email = `${anonymous.createWord()}@example.com`
      await anonymous.post('/api/v1/auth/register', { json: { email, password } })
      emails.push(email)
      const form = new URLSearchParams({ username: email, password }).toString()
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const { json } = await anonymous.ask('/api/v1/auth/token', { method: 'POST', text: form, headers })
      const me = await admin.withToken(json.access_token).ask('/api/v1/auth/me')
      if (me.json.email !== email) admin.recordViolation(`a token of ${email} belongs to ${me.json.email}`)
      if (admin.chance.isHit(0.3))
        await anonymous.post('/api/v1/auth/password-reset/request', { json: { email } })
    },
    judge: async () => {
      const { mail, query } = admin.world
      const rows = (await query('select email from account')).map(({ email }) => String(email))
      const sends = await query(
        `select recipients[1] as email, status, error_code, count(*)::int as n from comms_send where purpose = 'account' group by 1, 2, 3`,
      )
      const found = findMissingOrDuplicate('account', emails, rows)
      for (const email of emails) {
        const own = sends.filter((send) => send.email === email)
        const all = own.reduce((sum, { n }) => sum + Number(n), 0)
        const unknown = own
          .filter(({ status }) => status === 'unknown')
          .reduce((sum, { n }) => sum + Number(n), 0)
        const came = mail.raw.filter((text) => new RegExp(`^To: ${email}`, 'm').test(text)).length
        if (all === 0) found.push(`no mail to ${email} was created`)
        if (came > all || came < all - unknown)
          found.push(`${came} mails reached ${email}; sends: ${JSON.stringify(own)}`)
        for (const { status, error_code } of own)
          if (status !== 'sent' && status !== 'unknown')
            found.push(`a mail to ${email} is ${status}: ${error_code}`)
      }
      return found
    },
  }
}
