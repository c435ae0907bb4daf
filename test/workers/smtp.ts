import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { after } from 'node:test'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

/** A mail received by the SMTP server. */
export interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  readonly raw: string
  readonly mail: Email
}

export interface SmtpStandIn {
  readonly port: number
  readonly received: ReceivedMail[]
  /** Number of connections so far. */
  connections: number
  stop(): Promise<void>
}

/** Starts an SMTP server that accepts all mail by default, and stops it after the test file. */
export async function startSmtpServer(options: SMTPServerOptions = {}): Promise<SmtpStandIn> {
  const received: ReceivedMail[] = []
  const sockets = new Set<Socket>()
  const server = new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    closeTimeout: 50,
    onData: (stream, session, done) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const raw = Buffer.concat(chunks)
        void PostalMime.parse(raw).then((mail) => {
          const { mailFrom, rcptTo } = session.envelope
          const from = mailFrom === false ? '' : mailFrom.address
          received.push({ from, to: rcptTo.map(({ address }) => address), raw: raw.toString(), mail })
          done()
        })
      })
    },
    ...options,
  })
  server.on('error', () => {})
  server.server.on('connection', (socket: Socket) => {
    standIn.connections++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const { port } = server.server.address() as AddressInfo
  const stop = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  }
  const standIn: SmtpStandIn = { port, received, connections: 0, stop }
  after(stop)
  return standIn
}

/** Creates an error that smtp-server sends as a reply. */
export function createSmtpReply(responseCode: number, text = 'the words of the server'): Error {
  return Object.assign(new Error(text), { responseCode })
}
