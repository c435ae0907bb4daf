import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { createOffice, encryptAgile, wordParagraph, wordPart } from '../office.ts'
import { createPageLines } from '../pdfs.ts'
import { getSharedService } from './shared-service.ts'

const PASSWORD = 'Grün & weiß'
const { query, ...service } = await getSharedService()
const client = await service.client()

const encryptedPdf = await readFile(new URL('../data/locked.pdf', import.meta.url))
const lines = [1, 2].map((n) => createPageLines(n, 2, { sentences: 2 }).join('\n'))

test('reads an encrypted PDF with its password, and keeps the password for later readings and images', async () => {
  const { id } = (await (await client.upload(encryptedPdf, 'locked.pdf')).json()) as { id: number }
  const path = `/api/v1/documents/${id}`
  const extract = async (query = '', body?: object) => {
    const answer = await client.post(`${path}/extract${query}`, body)
    return [answer.status, await answer.json()]
  }
  const readTexts = async () =>
    (await query('select text from document_page where document_id = $1 order by page_number', [id])).map(
      ({ text }) => text,
    )
  const wrong = [
    400,
    { detail: 'The document is encrypted and the password is wrong', code: 'document.password_wrong' },
  ]

  assert.deepEqual(await extract(), [200, { read: 0, unread: 1, skipped: 0 }])
  const [page] = await query('select status, detail from document_page where document_id = $1', [id])
  assert.deepEqual(page, { status: 'unread', detail: 'The document is encrypted and needs a password' })
  assert.deepEqual(await extract('', { password: 'grün & weiß' }), wrong)

  assert.deepEqual(await extract('', { password: PASSWORD }), [200, { read: 2, unread: 0, skipped: 0 }])
  assert.deepEqual(await readTexts(), lines)
  // The page that reports the encryption never replaces pages that have been read.
  assert.deepEqual(await extract('?force=true', { password: 'mistaken' }), wrong)
  assert.deepEqual(await readTexts(), lines)
  assert.deepEqual(await extract('?force=true'), [200, { read: 2, unread: 0, skipped: 0 }])
  const image = await client.fetch(`${path}/pages/2/image`)
  assert.equal(image.status, 200)
  assert.equal(Buffer.from(await image.arrayBuffer()).toString('latin1', 1, 4), 'PNG')

  // Make the password impossible to unseal, as after a change of the key. The pages that have been read remain.
  await query(
    `update document set sealed_password = left(sealed_password, 9) || reverse(substr(sealed_password, 10)) where id = $1`,
    [id],
  )
  assert.deepEqual(await extract('?force=true'), wrong)
  assert.deepEqual(await readTexts(), lines)
  const stored = await query(`select coalesce(string_agg(payload::text, ''), '') as text from job`)
  assert.match(stored[0]!.text as string, /sealedPassword/)
  const visible = await query(
    `select coalesce(string_agg(j::text || e::text, ''), '') as text from job j, job_event_row e`,
  )
  for (const { text } of [...stored, ...visible]) assert.doesNotMatch(text as string, /weiß|mistaken/)
})

test('reads an encrypted office file with its password', async () => {
  const file = encryptAgile(createOffice('docx', wordPart(wordParagraph('walrus'))), PASSWORD)
  const { id } = (await (await client.upload(file, 'locked.docx')).json()) as { id: number }
  const extract = async (body?: object) => {
    const answer = await client.post(`/api/v1/documents/${id}/extract`, body)
    return [answer.status, await answer.json()]
  }
  assert.deepEqual(await extract(), [200, { read: 0, unread: 1, skipped: 0 }])
  const [page] = await query('select detail from document_page where document_id = $1', [id])
  assert.deepEqual(page, { detail: 'The document is encrypted and needs a password' })
  const [status, error] = await extract({ password: 'mistaken' })
  assert.deepEqual([status, (error as { code: string }).code], [400, 'document.password_wrong'])
  assert.deepEqual(await extract({ password: PASSWORD }), [200, { read: 1, unread: 0, skipped: 0 }])
  const [read] = await query('select text from document_page where document_id = $1', [id])
  assert.deepEqual(read, { text: 'walrus' })
})
