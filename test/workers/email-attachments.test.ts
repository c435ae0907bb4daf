import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import PostalMime from 'postal-mime'
import { fail } from '../../sql/errors.ts'
import type { EmailAttachment, EmailMessage, ProviderRequest } from '../../tasks/comms/ports.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createMailer, type Mailer } from '../../workers/providers/comms/email.ts'
import { startMailServer } from '../standins/smtp.ts'
import { until } from '../until.ts'

/**
 * Attachments are read only as fast as the mail server accepts them. A mail has all of its attachments or is not sent.
 */

const server = await startMailServer()
const dataDir = mkdtempSync(join(tmpdir(), 'millrace-attachments-'))
after(async () => {
  await server.stop()
  rmSync(dataDir, { recursive: true, force: true })
})
const createMailerFor = (url: string, more: object = {}): Mailer =>
  createMailer(
    parseSettings({
      EMAIL_SMTP_URL: url,
      EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
      DATA_DIR: dataDir,
    }),
    more,
  )
const mailer = createMailerFor(server.url)

const createMessage = (attachments: readonly EmailAttachment[], id: string = randomUUID()): EmailMessage => ({
  ...{ id, to: ['reader@example.com'], subject: 's', text: 'The text', html: '<p>The text</p>' },
  ...{ dateMs: 1_700_000_000_000, attachments },
})
const createRequest = (signal = new AbortController().signal): ProviderRequest & { begun: number } => {
  const made = { signal, begun: 0, begin: () => Promise.resolve(void made.begun++) }
  return made
}

/**
 * Returns an attachment that yields the same buffer repeatedly. As with a real store, the buffer is valid until the
 * next read.
 */
const createAttachment = (
  filename: string,
  bytes: Uint8Array,
  mediaType = 'application/pdf',
): EmailAttachment => ({
  ...{ filename, mediaType, byteSize: bytes.length },
  read: async function* () {
    const buffer = new Uint8Array(1000)
    for (let at = 0; at < bytes.length; at += buffer.length) {
      const piece = bytes.subarray(at, at + buffer.length)
      buffer.set(piece)
      yield buffer.subarray(0, piece.length)
      buffer.fill(0)
    }
  },
})

test('arrive with names, types and all bytes', async () => {
  const files = [
    createAttachment('Grüße & "quotes".pdf', randomBytes(300_001)),
    createAttachment(`${'a very long name '.repeat(14)}.txt`, Buffer.from('text ✓\r\n.\r\n..'), 'text/plain'),
    createAttachment('empty.bin', new Uint8Array(), 'application/octet-stream'),
    createAttachment(
      'inner.eml',
      Buffer.from('Subject: inner\r\n\r\nbytes \xff', 'latin1'),
      'message/rfc822',
    ),
    createAttachment('twice.pdf', randomBytes(77)),
  ]
  const one = createMessage(files)
  assert.equal((await mailer.send(one, createRequest())).kind, 'taken')
  const mail = await PostalMime.parse(server.raw.at(-1)!)
  assert.deepEqual([mail.text?.trim(), mail.html?.trim()], ['The text', '<p>The text</p>'])
  const types = ['application/pdf', 'text/plain', 'application/octet-stream', 'application/octet-stream']
  assert.deepEqual(
    mail.attachments.map(({ filename, mimeType, disposition }) => [filename, mimeType, disposition]),
    files.map(({ filename }, n) => [filename, types[n] ?? 'application/pdf', 'attachment']),
  )
  for (const [n, { read }] of files.entries()) {
    const bytes: Buffer[] = []
    for await (const piece of read()) bytes.push(Buffer.from(piece))
    assert.ok(Buffer.from(mail.attachments[n]!.content as ArrayBuffer).equals(Buffer.concat(bytes)), `${n}`)
  }
  assert.equal((await mailer.send(createMessage(files, one.id), createRequest())).kind, 'taken')
  assert.equal(server.raw.at(-1), server.raw.at(-2), 'and the same to the last byte in every attempt')
})

test('prevent the mail with their own error if they break off', async () => {
  const before = server.taken.length
  const broken: EmailAttachment = {
    ...createAttachment('x.pdf', new Uint8Array(2_000_000)),
    read: async function* () {
      yield randomBytes(1_000_000)
      throw fail('document.bytes_missing')
    },
  }
  const on = createRequest()
  await assert.rejects(mailer.send(createMessage([broken]), on), { code: 'document.bytes_missing' })
  assert.deepEqual([on.begun, server.taken.length], [0, before])
  assert.equal((await mailer.send(createMessage([]), createRequest())).kind, 'taken', 'the next one is sent')
})

test('are not read for a server that rejects the mail', async () => {
  let reads = 0
  const unread: EmailAttachment = {
    ...createAttachment('x.pdf', new Uint8Array(10)),
    read: async function* () {
      reads++
      yield new Uint8Array(10)
    },
  }
  server.mode = () => ({ status: 550, at: 'rcpt' })
  await assert.rejects(mailer.send(createMessage([unread]), createRequest()), { code: 'email.refused' })
  server.mode = () => 'take'
  assert.equal(reads, 0)
})

test("are read at the server's pace, and released when the send is aborted", async () => {
  const sockets = new Set<Socket>()
  // This server accepts every command, but stops reading when the content starts.
  const slow = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).write('220 slow\r\n')
    socket.on('data', (chunk: Buffer) => {
      if (!chunk.toString().startsWith('DATA')) return void socket.write('250 OK\r\n')
      socket.write('354 go\r\n')
      socket.pause()
    })
  })
  await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', () => resolve()))
  after(() => {
    for (const socket of sockets) socket.destroy()
    slow.close()
  })
  const PIECE = 1_000_000
  const whole = 400 * PIECE
  let [read, isReleased] = [0, false]
  const large: EmailAttachment = {
    ...createAttachment('large.bin', new Uint8Array(), 'application/octet-stream'),
    byteSize: whole,
    read: async function* () {
      try {
        for (const piece = new Uint8Array(PIECE); read < whole; read += PIECE) yield piece
      } finally {
        isReleased = true
      }
    },
  }
  const abort = new AbortController()
  const on = createRequest(abort.signal)
  const { port } = slow.address() as AddressInfo
  const sending = createMailerFor(`smtp://127.0.0.1:${port}`).send(createMessage([large]), on)
  let [seen, same] = [-1, 0]
  await until('reading has stopped', () => {
    same = read === seen && read > 0 ? same + 1 : 0
    seen = read
    return same > 10
  })
  // Bytes in the sockets' buffers count as read, too.
  assert.ok(read < whole / 8, `${read} bytes are read ahead`)
  abort.abort('cancelled')
  await assert.rejects(sending, (error) => error === 'cancelled')
  await until('the attachment is released', () => isReleased)
  assert.equal(on.begun, 0)
})

test('are in the files of the outbox, whose mails otherwise have none', async () => {
  const outbox = createMailerFor('outbox:')
  const bytes = randomBytes(500_000)
  const one = createMessage([createAttachment('a.pdf', bytes)])
  await outbox.send(one, createRequest())
  const folder = join(dataDir, 'outbox')
  const mail = await PostalMime.parse(readFileSync(join(folder, `${one.id}.eml`)))
  assert.ok(Buffer.from(mail.attachments[0]!.content as ArrayBuffer).equals(bytes))
  const broken: EmailAttachment = {
    ...createAttachment('x.pdf', new Uint8Array(10)),
    read: async function* () {
      yield new Uint8Array(5)
      throw fail('document.bytes_missing')
    },
  }
  const on = createRequest()
  await assert.rejects(outbox.send(createMessage([broken]), on), { code: 'document.bytes_missing' })
  assert.deepEqual([readdirSync(folder), on.begun], [[`${one.id}.eml`], 0])
})
