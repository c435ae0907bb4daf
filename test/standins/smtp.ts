import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { SMTPServer, type SMTPServerSession } from 'smtp-server'

/**
 * Reaction of the mail server to a message. The server accepts the message (`take`), rejects it with a status at RCPT
 * or after its content, or fails before or after accepting it. `hang` never answers, `cut` closes the connection,
 * `half` closes it within the content, `twice` answers twice.
 */
export type MailMode =
  | 'take'
  | `${'hang' | 'cut'} ${'before' | 'after'}`
  | 'half'
  | 'twice'
  | { readonly status: number; readonly at: 'rcpt' | 'data' }

export interface MailStandIn {
  readonly url: string
  /** Message-IDs of accepted messages, in order. */
  readonly taken: string[]
  /** Accepted messages as received, in the same order. */
  readonly raw: string[]
  /** Number of messages with at least one RCPT, accepted or not. */
  requests: number
  /** Recipients that the server always rejects. */
  readonly unknownRecipients: Set<string>
  /** Returns the duration of a message in ms. Half of it passes before the message is accepted, half after. */
  pace: () => number
  /** Chooses the reaction to the next message; called once per message, at its first recipient. */
  mode: (recipient: string) => MailMode
  stop(): Promise<void>
}

/** Starts a server. @param port default a free one. */
export async function startMailServer(port = 0): Promise<MailStandIn> {
  const sockets = new Set<Socket>()
  const modes = new Map<string, MailMode>()
  const socketOf = ({ remotePort }: SMTPServerSession): Socket | undefined =>
    [...sockets].find((socket) => socket.remotePort === remotePort)
  const server = new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    closeTimeout: 50,
    onMailFrom: (_address, session, done) => {
      modes.delete(session.id)
      done()
    },
    onRcptTo: ({ address }, session, done) => {
      const mode = modes.get(session.id) ?? standIn.mode(address)
      if (!modes.has(session.id)) standIn.requests++
      modes.set(session.id, mode)
      if (standIn.unknownRecipients.has(address)) done(createReplyError(550))
      else if (typeof mode === 'object' && mode.at === 'rcpt') done(createReplyError(mode.status))
      else done()
    },
    onData: (stream, session, done) => {
      const mode = modes.get(session.id) ?? 'take'
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        if (mode === 'half') socketOf(session)?.destroy()
      })
      stream.on('end', () => {
        if (mode !== 'half') void end(mode, Buffer.concat(chunks).toString(), done, socketOf(session))
      })
    },
  })
  const end = async (
    mode: MailMode,
    raw: string,
    done: (error?: Error | null) => void,
    socket?: Socket,
  ): Promise<void> => {
    const paceMs = standIn.pace() / 2
    if (paceMs > 0) await delay(paceMs)
    if (typeof mode !== 'object' && !mode.endsWith('before')) {
      standIn.raw.push(raw)
      standIn.taken.push(/^message-id: *(\S+)/im.exec(raw)?.[1] ?? '')
    }
    if (paceMs > 0) await delay(paceMs)
    if (typeof mode === 'object') done(createReplyError(mode.status))
    else if (mode.startsWith('cut')) socket?.destroy()
    else if (!mode.startsWith('hang')) done()
    if (mode === 'twice') socket?.write('250 OK, once more\r\n')
  }
  server.on('error', () => {})
  server.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  })
  server.listen(port, '127.0.0.1')
  await once(server.server, 'listening')
  const standIn: MailStandIn = {
    url: `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`,
    taken: [],
    raw: [],
    requests: 0,
    unknownRecipients: new Set(),
    pace: () => 0,
    mode: () => 'take',
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
  return standIn
}

function createReplyError(responseCode: number): Error {
  return Object.assign(new Error('the words of the server'), { responseCode })
}
