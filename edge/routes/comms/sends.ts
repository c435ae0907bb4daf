import { type Channel, insertSend } from '../../../sql/comms.ts'
import type { Queries } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { uuidv7 } from '../../../sql/ids.ts'
import { CallResult, call } from '../../../tasks/comms/call.ts'
import { EmailResult, email } from '../../../tasks/comms/email.ts'
import { segmentsOf } from '../../../tasks/comms/segments.ts'
import { missingForEmail, missingForTelephony } from '../../../tasks/comms/settings.ts'
import { SmsResult, sms } from '../../../tasks/comms/sms.ts'
import { refuseSuppressed } from '../../../tasks/comms/suppression.ts'
import { enqueue, type JobRef, type TaskDefinition } from '../../../tasks/task.ts'
import type { Caller } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { route } from '../../pipeline/route.ts'
import { CallRequest, EmailRequest, SmsRequest } from './shapes.ts'

const ONCE = `What the provider has accepted is never sent again, even if a worker dies meanwhile. If it is unclear \
whether a request was accepted, the status is \`unknown\` and nothing is repeated: it is looked up later where the \
provider has a list, and shown by \`GET /comms/sends?status=unknown\` for a person to decide.`

const TELEPHONY_ERRORS = ['telephony.not_configured', 'telephony.refused', 'telephony.failed'] as const

/** Sending: a ledger row and its job, in one transaction. */
export const sendRoutes = [
  route({
    method: 'post',
    path: '/email/send',
    summary: 'Send an email',
    description: `Requires \`text\` or \`html\`; allows at most 50 recipients. The Message-ID is made from the \
returned id. ${ONCE}`,
    body: EmailRequest,
    response: EmailResult.meta({ id: 'EmailSent' }),
    errors: [
      'email.not_configured',
      'email.suppressed',
      'email.sender_unverified',
      'email.refused',
      'email.failed',
    ],
    sideEffect: true,
    job: async ({ body, edge, ...input }) => {
      if (missingForEmail(edge.settings.email).length > 0) throw fail('email.not_configured')
      await refuseSuppressed(input.tx, [...body.to, ...body.cc, ...body.bcc])
      const id = uuidv7()
      return sendJob(
        edge,
        input,
        email,
        { send_id: id },
        { channel: 'email', id, to: body.to, message: body },
      )
    },
  }),

  route({
    method: 'post',
    path: '/sms/send',
    summary: 'Send a text message',
    description: `\`segments\` is the number of parts: a single one holds 160 characters of the GSM alphabet or 70 of \
any other, each of several holds 153 or 67. ${ONCE}`,
    body: SmsRequest,
    response: SmsResult.meta({ id: 'SmsSent' }),
    errors: TELEPHONY_ERRORS,
    sideEffect: true,
    job: async ({ body, edge, ...input }) => {
      if (missingForTelephony(edge.settings.telephony).length > 0) throw fail('telephony.not_configured')
      const id = uuidv7()
      const payload = { send_id: id, to: body.to, segments: segmentsOf(body.body).count }
      return sendJob(edge, input, sms, payload, { channel: 'sms', id, to: [body.to], message: body })
    },
  }),

  route({
    method: 'post',
    path: '/call',
    summary: 'Start a call',
    description: `Rings for \`timeout\` seconds. Once somebody answers, the provider fetches the script of the call \
(TwiML) from \`script_url\`. ${ONCE}`,
    body: CallRequest,
    response: CallResult.meta({ id: 'CallStarted' }),
    errors: TELEPHONY_ERRORS,
    sideEffect: true,
    job: async ({ body, edge, ...input }) => {
      if (missingForTelephony(edge.settings.telephony).length > 0) throw fail('telephony.not_configured')
      const id = uuidv7()
      const payload = { send_id: id, to: body.to }
      return sendJob(edge, input, call, payload, { channel: 'call', id, to: [body.to], message: body })
    },
  }),
]

interface Input {
  readonly caller: Caller
  readonly tx: Queries
  readonly requestId: string
}

interface NewSend {
  readonly channel: Channel
  readonly id: string
  readonly to: readonly string[]
  readonly message: object
}

async function sendJob<P, R>(
  edge: Edge,
  { caller, tx, requestId }: Input,
  task: TaskDefinition<P, R>,
  payload: P,
  { channel, id, to, message }: NewSend,
): Promise<JobRef<R>> {
  const { ownerId } = caller
  const maxTries = edge.settings.workerMaxTries
  const ref = await enqueue(tx, task, payload, { ownerId, requestId, maxTries })
  await tx.run(insertSend({ id, channel, ownerId, jobId: ref.jobId, recipients: to, message }))
  return ref
}
