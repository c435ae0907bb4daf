import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { Failure, fail } from '../../sql/errors.ts'
import type { EmailMessage } from '../../tasks/comms/ports.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createMailer, type Mailer, requiresTls } from '../../workers/providers/comms/email.ts'
import { until } from '../until.ts'
import { createSmtpReply, type SmtpStandIn, startSmtpServer } from './smtp.ts'

const USER = 'relay-user'
const SECRET = 'hunter2-%-secret'
// Credentials of AUTH PLAIN (RFC 4616).
const PLAIN_CREDENTIALS = Buffer.from(`\0${USER}\0${SECRET}`).toString('base64')
const LIMITS = { connectMs: 300, silentMs: 300 }

function createTestMailer(port: number, credentials = '', limits = {}): Mailer {
  const url = `smtp://${credentials}127.0.0.1:${port}`
  return createMailer(
    parseSettings({ EMAIL_SMTP_URL: url, EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com' }),
    limits,
  )
}
/** Creates a mailer with short timeouts, for silent servers. The other limits suit a busy machine. */
const createHastyMailer = (port: number): Mailer => createTestMailer(port, '', LIMITS)

const createMessage = (more: Partial<EmailMessage> = {}): EmailMessage => ({
  id: randomUUID(),
  to: ['reader@example.com'],
  subject: 'A subject',
  text: 'The text.\n',
  html: '<p>The text.</p>\n',
  ...more,
})

async function send(
  via: Mailer,
  one = createMessage(),
  signal = new AbortController().signal,
): Promise<void> {
  const handed = await via.send(one, { signal, begin: () => Promise.resolve() })
  if (handed.kind !== 'unknown') return
  signal.throwIfAborted()
  throw fail('email.failed', { reason: handed.reason })
}

/** Returns the failure of a send. Asserts that neither the client nor the log would see a secret. */
async function expectFailure(
  via: Mailer,
  one = createMessage(),
): Promise<{ code: string; detail: string; again: boolean }> {
  const error = await send(via, one).then(
    () => assert.fail('It was sent'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof Failure, inspect(error))
  const { code, detail, retryable } = error
  assert.doesNotMatch(detail, /hunter2|relay-user|reader@|the words of the server|127\.0\.0\.1/)
  const shown = inspect(error, { depth: 10 })
  assert.ok(!shown.includes(SECRET) && !shown.includes(PLAIN_CREDENTIALS))
  return { code, detail, again: retryable }
}

const createRejection = (reason: string) => ({
  code: 'email.refused',
  detail: `The email provider refused the message: ${reason}`,
  again: false,
})
const createFailure = (reason: string) => ({
  code: 'email.failed',
  detail: `The email provider could not be reached or failed: ${reason}`,
  again: true,
})

describe('a mail over SMTP', () => {
  test('arrives with both parts, in any language, from the configured sender', async () => {
    const server = await startSmtpServer()
    const one = createMessage({
      subject: 'Prüfung — 検証 ✓',
      text: `Grüße, ${'längere Zeile '.repeat(30)}\n.\n..ein Punkt\n`,
      html: '<p>Grüße &#60;b&#62;</p>',
    })
    await send(createTestMailer(server.port), one)
    const [{ from, to, raw, mail }] = server.received as [SmtpStandIn['received'][0]]
    assert.deepEqual([from, to], ['service@example.com', ['reader@example.com']])
    assert.deepEqual(
      [mail.subject, mail.text?.replace(/\r\n/g, '\n').trimEnd()],
      [one.subject, one.text!.trimEnd()],
    )
    assert.equal(mail.html?.trim(), one.html)
    assert.deepEqual(
      [mail.from?.address, mail.to?.[0]?.address],
      ['service@example.com', 'reader@example.com'],
    )
    assert.equal(mail.messageId, `<${one.id}@example.com>`)
    assert.match(raw, /^Content-Type: multipart\/alternative;/m)
    assert.match(raw, /^Auto-Submitted: auto-generated\r$/m)
    assert.match(raw, new RegExp(`^X-Send-ID: ${one.id}\r$`, 'im'), 'by which events of Resend name it')
    assert.ok(
      raw.split('\r\n').every((line) => line.length <= 998 && !/[^\x20-\x7e\t]/.test(line)),
      'lines that every server takes',
    )
  })

  test('has one part if only one is given', async () => {
    const server = await startSmtpServer()
    const { html: _, ...textOnly } = createMessage()
    await send(createTestMailer(server.port), textOnly)
    assert.deepEqual(
      [server.received[0]!.mail.html, server.received[0]!.mail.text?.trim()],
      [undefined, 'The text.'],
    )
  })

  test('has the same Message-ID at each attempt', async () => {
    const server = await startSmtpServer()
    const via = createTestMailer(server.port)
    const one = createMessage()
    await send(via, one)
    await send(via, one)
    const ids = server.received.map(({ mail }) => mail.messageId)
    assert.deepEqual(ids, [`<${one.id}@example.com>`, `<${one.id}@example.com>`])
  })

  test('shares a few connections with concurrent mails', async () => {
    const server = await startSmtpServer()
    const via = createTestMailer(server.port)
    await Promise.all(Array.from({ length: 30 }, () => send(via)))
    assert.equal(new Set(server.received.map(({ mail }) => mail.messageId)).size, 30)
    assert.ok(server.connections <= 4, `${server.connections} connections`)
  })

  test('signs in with the credentials of the URL', async () => {
    const seen: unknown[] = []
    const server = await startSmtpServer({
      authOptional: false,
      onAuth: ({ username, password }, _session, done) => {
        seen.push([username, password])
        done(null, { user: username ?? '' })
      },
    })
    await send(createTestMailer(server.port, `${USER}:${encodeURIComponent(SECRET)}@`))
    assert.deepEqual([seen, server.received.length], [[[USER, SECRET]], 1])
  })

  test('treats text that looks like a header, a file or a URL as text', async () => {
    const server = await startSmtpServer()
    const one = createMessage({
      subject: 'Hello\r\nBcc: victim@example.com\r\n\r\nbody',
      text: 'Bcc: victim@example.com\n',
      html: '<img src="file:///etc/passwd">',
    })
    await send(createTestMailer(server.port), one)
    const { to, mail } = server.received[0]!
    assert.deepEqual([to, mail.bcc, mail.attachments.length], [['reader@example.com'], undefined, 0])
    assert.ok(!mail.headers.some(({ key }) => key === 'bcc'))
  })
})

describe('a mail that is not accepted', () => {
  for (const [at, options] of [
    [
      'RCPT',
      (code: number) => ({ onRcptTo: (_a: unknown, _s: unknown, done: Done) => done(createSmtpReply(code)) }),
    ],
    [
      'MAIL',
      (code: number) => ({
        onMailFrom: (_a: unknown, _s: unknown, done: Done) => done(createSmtpReply(code)),
      }),
    ],
    [
      'DATA',
      (code: number) => ({
        onData: (stream: NodeJS.ReadableStream, _s: unknown, done: Done) => {
          stream.resume().on('end', () => done(createSmtpReply(code)))
        },
      }),
    ],
    [
      'the connection',
      (code: number) => ({ onConnect: (_s: unknown, done: Done) => done(createSmtpReply(code)) }),
    ],
  ] as const) {
    test(`at ${at} for now may be accepted later, but not after a permanent error`, async () => {
      for (const code of [421, 450, 452])
        assert.deepEqual(
          await expectFailure(createTestMailer((await startSmtpServer(options(code))).port)),
          createFailure(`SMTP status ${code}`),
        )
      for (const code of [550, 554])
        assert.deepEqual(
          await expectFailure(createTestMailer((await startSmtpServer(options(code))).port)),
          createRejection(`SMTP status ${code}`),
        )
    })
  }

  test('because of wrong credentials fails permanently, unless they cannot be checked now', async () => {
    const auth = (code: number) =>
      startSmtpServer({ authOptional: false, onAuth: (_auth, _session, done) => done(createSmtpReply(code)) })
    const credentials = `${USER}:${encodeURIComponent(SECRET)}@`
    assert.deepEqual(
      await expectFailure(createTestMailer((await auth(535)).port, credentials)),
      createRejection('it does not accept the credentials'),
    )
    assert.deepEqual(
      await expectFailure(createTestMailer((await auth(454)).port, credentials)),
      createFailure('SMTP status 454'),
    )
    const open = await startSmtpServer({ authOptional: false })
    assert.equal((await expectFailure(createTestMailer(open.port))).code, 'email.refused')
  })

  test('credentials are not sent if STARTTLS is required and not offered', async () => {
    let tried = 0
    const server = await startSmtpServer({
      onAuth: (_auth, _session, done) => {
        tried++
        done(null, { user: USER })
      },
    })
    const send = (query: string) =>
      createMailer(
        parseSettings({
          EMAIL_SMTP_URL: `smtp://${USER}:x@127.0.0.1:${server.port}${query}`,
          EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
        }),
      )
    assert.deepEqual(
      await expectFailure(send('?requireTLS=true')),
      createRejection('it does not offer STARTTLS'),
    )
    assert.equal(tried, 0)
    await send('').send(createMessage(), {
      signal: new AbortController().signal,
      begin: () => Promise.resolve(),
    })
    assert.equal(tried, 1)
  })

  test('STARTTLS is required for credentials outside a private network, unless the URL says otherwise', () => {
    for (const url of ['smtp://u:p@mail.example.com', 'smtp://u:p@93.184.216.34:587', 'smtp://u@mailer'])
      assert.ok(requiresTls(url), url)
    for (const url of [
      'smtps://u:p@mail.example.com',
      'smtp://mail.example.com',
      'smtp://u:p@localhost:1025',
      'smtp://u:p@[::1]:1025',
      'smtp://u:p@10.1.2.3',
      'smtp://u:p@mailer?requireTLS=false',
    ])
      assert.ok(!requiresTls(url), url)
  })

  test('a missing or wrong server is a temporary failure', async () => {
    const gone = await startSmtpServer()
    await gone.stop()
    assert.deepEqual(await expectFailure(createTestMailer(gone.port)), createFailure('ESOCKET'))
    const other = await startTcpServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    const { code, again } = await expectFailure(createTestMailer(other))
    assert.deepEqual([code, again], ['email.failed', true])
  })

  test('a server that falls silent is given up, at any step', async () => {
    const silent = [
      { onConnect: () => {} },
      { onMailFrom: () => {} },
      { onRcptTo: () => {} },
      { onData: (stream: NodeJS.ReadableStream) => void stream.resume() },
    ]
    for (const options of silent) {
      const server = await startSmtpServer(options)
      const startedAt = performance.now()
      const { code, again } = await expectFailure(createHastyMailer(server.port))
      assert.deepEqual([code, again], ['email.failed', true])
      const ms = performance.now() - startedAt
      // Production's timeouts would take longer than this.
      assert.ok(ms < 10_000, `${ms} ms`)
    }
    const deaf = await startTcpServer(() => {})
    assert.deepEqual(await expectFailure(createHastyMailer(deaf)), createFailure('ETIMEDOUT'))
  })

  test('a connection that is cut after DATA gets one copy, and only the job retries', async () => {
    let bodies = 0
    const port = await startTcpServer((socket) => {
      let data = false
      socket.write('220 here\r\n')
      socket.on('data', (chunk) => {
        for (const line of chunk.toString().split('\r\n')) {
          if (data && line === '.') {
            bodies++
            socket.destroy()
          } else if (/^DATA/i.test(line)) {
            data = true
            socket.write('354 go on\r\n')
          } else if (/^(EHLO|MAIL|RCPT)/i.test(line)) socket.write('250 fine\r\n')
        }
      })
    })
    const { code, again } = await expectFailure(createTestMailer(port))
    assert.deepEqual([code, again, bodies], ['email.failed', true, 1])
  })

  test('an abort ends the wait immediately, before and during the send', async () => {
    const server = await startSmtpServer({ onRcptTo: () => {} })
    const via = createMailer(
      parseSettings({
        EMAIL_SMTP_URL: `smtp://127.0.0.1:${server.port}`,
        EMAIL_PROVIDER_FROM_EMAIL: 'a@example.com',
      }),
    )
    await assert.rejects(
      send(via, createMessage(), AbortSignal.abort('cancelled')),
      (reason) => reason === 'cancelled',
    )
    assert.equal(server.connections, 0)
    const abort = new AbortController()
    const sending = send(via, createMessage(), abort.signal)
    await until('the client has connected', () => server.connections === 1)
    abort.abort('timeout')
    await assert.rejects(sending, (reason) => reason === 'timeout')
  })

  test('a mailer without a server or a sender is not configured', async () => {
    const production = {
      NODE_ENV: 'production',
      SECRET_KEY: 'a secret for tests, long enough to be one',
      DATABASE_URL: 'postgresql://x/y',
    }
    const notConfigured = { code: 'email.not_configured', again: false }
    for (const env of [
      {},
      { EMAIL_PROVIDER_API_KEY: SECRET },
      { EMAIL_PROVIDER_FROM_EMAIL: 'a@example.com' },
    ]) {
      const { code, again } = await expectFailure(createMailer(parseSettings({ ...production, ...env })))
      assert.deepEqual({ code, again }, notConfigured)
    }
  })
})

type Done = (error?: Error | null) => void

/** Starts a TCP server that does not speak SMTP; returns its port. */
async function startTcpServer(serve: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    serve(socket)
  })
  server.listen(0, '127.0.0.1').unref()
  await new Promise((resolve) => server.once('listening', resolve))
  return (server.address() as AddressInfo).port
}
