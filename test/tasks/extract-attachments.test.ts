import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { uuidv7 } from '../../sql/ids.ts'
import { AttachmentUnreadable } from '../../tasks/context.ts'
import { createTestDatabase } from '../database.ts'
import { assertFailure, createExtractions, createPage } from './extract-help.ts'

/** Extracting a mail creates documents from its attachments. */

const database = await createTestDatabase()
const { query } = database
const { add, run, pages } = createExtractions(database)

/** Reads the documents that were attached to a mail. */
const readAttached = (id: number) =>
  query(
    `select title, media_type, source, owner_id, byte_size::int as bytes,
       (select count(*)::int from job where mailbox = 'document:' || d.id) as jobs
     from document d where attached_to_id = $1 order by d.id`,
    [id],
  )
const createRow = (title: string, type: string, bytes: number) => ({
  title,
  media_type: type,
  source: 'attachment',
  owner_id: null,
  bytes,
  jobs: 1,
})

test('attachments become documents that refer to their mail and are read, once for any repetition', async () => {
  const id = await add('a mail')
  const attachments = [
    ['fees.csv', 'ship,fee of the first'],
    [' letter.md ', '# Letter of the first'],
    ['', 'without a name, of the first'],
    ['empty.txt', ''],
  ] as const
  const ran = await run(id, { pageCount: 1, attachments })
  assert.deepEqual(ran.result, { read: 1, unread: 0, skipped: 0 })
  assert.deepEqual(ran.progress.at(-1), ['Storing attachment 4 of 4', undefined, undefined])
  const stored = [
    createRow('fees.csv', 'text/plain', 21),
    createRow('letter.md', 'text/markdown', 21),
    createRow('Untitled', 'text/plain', 28),
  ]
  assert.deepEqual(await readAttached(id), stored)
  const blobs = 'select count(*)::int as n from blob'
  const before = await query(blobs)
  await run(id, { pageCount: 1, attachments, force: true })
  assert.deepEqual(await readAttached(id), stored)
  assert.deepEqual(await query(blobs), before, 'no bytes are left of the second time')
})

describe('an extraction that cannot store an attachment', () => {
  const cut = [
    ['first.txt', 'stored before it'],
    ['later.txt', new Error('the disk is full')],
  ] as const
  const whole = [cut[0], ['later.txt', 'stored after it']] as const
  const both = [createRow('first.txt', 'text/plain', 16), createRow('later.txt', 'text/plain', 15)]

  for (const next of ['attempt', 'job'])
    test(`leaves it to the next ${next}, and still reads the page`, async () => {
      const id = await add(`a mail, cut short, for the next ${next}`)
      const jobId = uuidv7()
      const first = await run(id, { jobId, pageCount: 1, attachments: cut })
      assertFailure(first.error, 'document.store_failed')
      assert.deepEqual(await pages(id), ['1 read: Page 1'])
      await run(id, {
        ...(next === 'attempt' && { jobId, attempt: 2 }),
        pageCount: 1,
        attachments: whole,
        read: () => createPage('read again'),
      })
      assert.deepEqual([await readAttached(id), await pages(id)], [both, ['1 read: Page 1']])
      await query('delete from document where attached_to_id = $1', [id])
      const later = await run(id, { pageCount: 1, attachments: whole })
      assert.deepEqual([later.result, await readAttached(id)], [{ read: 0, unread: 0, skipped: 1 }, []])
    })
})

test('an extraction without unread pages does not restore deleted attachments', async () => {
  const id = await add('a mail, read before')
  const attachments = [['once.txt', 'attached of the second']] as const
  await run(id, { pageCount: 1, attachments })
  assert.deepEqual(await readAttached(id), [createRow('once.txt', 'text/plain', 22)])
  await query('delete from document where attached_to_id = $1', [id])
  await run(id, { pageCount: 1, attachments })
  assert.deepEqual(await readAttached(id), [])
})

test('existing documents stay unchanged, and attachments are stored down to those of attachments', async () => {
  const id = await add('another mail')
  const attachments = [['twice.txt', 'attached to two mails']] as const
  await run(id, { pageCount: 1, attachments })
  const second = await add('a second mail')
  await run(second, { pageCount: 1, attachments })
  assert.deepEqual([(await readAttached(id)).length, await readAttached(second)], [1, []])
  await query('update document set attached_to_id = $1 where id = $2', [id, second])
  await run(second, { pageCount: 1, attachments: [['deep.txt', 'deeply attached']], force: true })
  assert.deepEqual(await readAttached(second), [createRow('deep.txt', 'text/plain', 15)])
  const third = await add('a third mail')
  await query('update document set attached_to_id = $1 where id = $2', [second, third])
  await run(third, { pageCount: 1, attachments: [['deeper.txt', 'too deeply attached']], force: true })
  assert.deepEqual(await readAttached(third), [])
})

test('attachments that cannot be unpacked or are too large are skipped', async () => {
  const id = await add('a file with attachments of any size')
  const attachments = [
    ['bomb.txt', new AttachmentUnreadable('Unpacking the attachment takes too long')],
    ['small.txt', 'small enough'],
    ['large.txt', 'too large by itself and with others'],
    ['last.txt', 'the last one'],
  ] as const
  await run(id, { pageCount: 1, attachments, settings: { MAX_UPLOAD_BYTES: '7' } })
  assert.deepEqual(await readAttached(id), [
    createRow('small.txt', 'text/plain', 12),
    createRow('last.txt', 'text/plain', 12),
  ])
})
