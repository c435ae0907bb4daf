import type { MakeArea } from '../area.ts'

interface SentMessage {
  readonly channel: 'email' | 'sms' | 'call'
  readonly word: string
  readonly jobId: string
}

/** Sends emails, text messages and calls. None may be sent twice, or lost without a record. */
export const messages: MakeArea = (admin) => {
  const sent: SentMessage[] = []
  const requests = {
    email: (word: string) => ({ to: ['reader@example.com'], subject: word, text: 'Hello' }),
    sms: (word: string) => ({ to: '+14155552671', body: word }),
    call: (word: string) => ({ to: '+14155552671', script_url: `https://example.com/${word}` }),
  }
  const paths = { email: 'email/send', sms: 'sms/send', call: 'call' }

  return {
    act: async () => {
      const channel = admin.chance.pick(['email', 'sms', 'call'] as const)
      const word = admin.createWord()
      const path = `/api/v1/comms/${paths[channel]}?background=true`
      const { json } = await admin.post(path, { json: requests[channel](word) })
      sent.push({ channel, word, jobId: json.job_id })
    },
    judge: async () => {
      const { mail, twilio, query } = admin.world
      const rows = await query(
        `select job_id, status, requests, attempt, error_code, detail from comms_send where purpose = 'caller'`,
      )
      const subjects = mail.raw.map((text) => /^Subject: (.*)$/m.exec(text)?.[1]?.trim() ?? '')
      const contents = twilio.taken.map(({ content }) => content.replace('https://example.com/', ''))
      return sent.flatMap(({ channel, word, jobId }) => {
        const came = (channel === 'email' ? subjects : contents).filter((one) => one === word).length
        const row = rows.find((one) => one.job_id === jobId)
        const isRight = (row?.status === 'sent' && came === 1) || (row?.status === 'unknown' && came <= 1)
        return isRight
          ? []
          : [`${channel} ${word} of job ${jobId} arrived ${came} times: ${JSON.stringify(row)}`]
      })
    },
  }
}
