import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import PostalMime from 'postal-mime'
import type { EmailMessage } from '../../tasks/comms/ports.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createMailer } from '../../workers/providers/comms/email.ts'

const folders: string[] = []
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

function createTestOutbox() {
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-outbox-'))
  folders.push(dataDir)
  const mailer = createMailer(parseSettings({ DATA_DIR: dataDir, EMAIL_SMTP_URL: 'outbox:' }))
  const folder = join(dataDir, 'outbox')
  return {
    folder,
    files: () => readdirSync(folder),
    read: (name: string) => readFileSync(join(folder, name)),
    send: (message: EmailMessage) =>
      mailer.send(message, { signal: new AbortController().signal, begin: () => Promise.resolve() }),
  }
}

const createMessage = (more: Partial<EmailMessage> = {}): EmailMessage => ({
  id: randomUUID(),
  to: ['reader@example.com'],
  subject: 'Grüße',
  text: 'text ✓',
  html: '<p>text ✓</p>',
  ...more,
})

test('each message is one .eml file, readable only by its owner and by mail programs', async () => {
  const box = createTestOutbox()
  const [one, other] = [createMessage(), createMessage()]
  await Promise.all([one, other].map(box.send))
  assert.deepEqual(box.files().sort(), [`${one.id}.eml`, `${other.id}.eml`].sort())
  assert.equal(statSync(join(box.folder, `${one.id}.eml`)).mode & 0o777, 0o600)
  assert.equal(statSync(box.folder).mode & 0o777, 0o700)
  const mail = await PostalMime.parse(box.read(`${one.id}.eml`))
  assert.deepEqual([mail.subject, mail.text?.trim(), mail.html?.trim()], ['Grüße', 'text ✓', '<p>text ✓</p>'])
  assert.deepEqual([mail.from?.address, mail.to?.[0]?.address], ['millrace@localhost', 'reader@example.com'])
  assert.equal(mail.messageId, `<${one.id}@localhost>`)
  assert.ok(!box.read(`${one.id}.eml`).includes('\r'), 'lines end as in other files here')
})

test('a repeated message leaves one complete file, even 20 times concurrently', async () => {
  const box = createTestOutbox()
  const one = createMessage({ text: 'x'.repeat(200_000) })
  await box.send(one)
  await Promise.all(Array.from({ length: 20 }, () => box.send(one)))
  assert.deepEqual(box.files(), [`${one.id}.eml`])
  const mail = await PostalMime.parse(box.read(`${one.id}.eml`))
  assert.deepEqual([mail.text?.trim().length, mail.messageId], [200_000, `<${one.id}@localhost>`])
})

test('a reader sees only complete files during writes', async () => {
  const box = createTestOutbox()
  mkdirSync(box.folder)
  // Writes several mails, in parallel and in sequence. Some are complete while others are being written.
  const several = async (): Promise<void> => {
    for (let n = 0; n < 5; n++) await box.send(createMessage({ text: 'y'.repeat(300_000) }))
  }
  let busy = true
  const sending = Promise.all(Array.from({ length: 4 }, several)).finally(() => {
    busy = false
  })
  let looks = 0
  while (busy) {
    for (const name of box.files().filter((name) => name.endsWith('.eml'))) {
      const text = box.read(name).toString()
      assert.ok(text.length > 300_000 && /--\s*$/.test(text), `${name} is whole`)
      looks++
    }
    await new Promise(setImmediate)
  }
  await sending
  assert.ok(looks > 0)
  assert.equal(box.files().length, 20)
})

test('an id cannot lead out of the folder, and failed writes leave nothing', async () => {
  const box = createTestOutbox()
  await box.send(createMessage({ id: '../../escape/me' }))
  assert.deepEqual(box.files(), ['______escape_me.eml'])
  const blocked = createTestOutbox()
  writeFileSync(blocked.folder, 'a file where the folder should be')
  await assert.rejects(blocked.send(createMessage()))
  const taken = createTestOutbox()
  const one = createMessage()
  mkdirSync(join(taken.folder, `${one.id}.eml`), { recursive: true })
  await assert.rejects(taken.send(one))
  assert.deepEqual(taken.files(), [`${one.id}.eml`])
})
