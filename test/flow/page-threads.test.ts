import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { testDatabase } from '../database.ts'
import { textPdf } from '../pdfs.ts'
import { Client, startProcess } from '../service.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-killer-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const file = join(folder, 'killed')
const killer = new URL('fixtures/killer.ts', import.meta.url)
const { url, query } = await testDatabase()
const env = { NODE_OPTIONS: `--import=${killer}`, KILLER_FILE: file, KILLER_ONCE: '5', KILLER_ALWAYS: '21' }
const [edge] = await Promise.all([startProcess('edge', url), startProcess('worker', url, env)])
const client = new Client(edge.ready.port!)
await client.register('reader@example.com')

test('threads that die over pages cost the page that kills each of them, and the job goes on in its first attempt', async () => {
  const { id } = (await (await client.upload(await textPdf(40), 'deadly.pdf')).json()) as { id: number }
  const extracted = await client.post(`/api/v1/documents/${id}/extract`)
  assert.deepEqual(await extracted.json(), { read: 39, unread: 1, skipped: 0 })
  const pages = await query(
    'select page_number, text, detail, given_up from document_page where document_id = $1 order by 1',
    [id],
  )
  for (const [i, { page_number, text }] of pages.entries()) {
    assert.equal(page_number, i + 1)
    if (i !== 20) assert.match(text as string, new RegExp(`^Page ${i + 1} of 40\n`))
  }
  const { detail, given_up } = pages[20]!
  assert.deepEqual([detail, given_up], ['Reading the page crashed the reader twice', true])
  const killed = readFileSync(file, 'utf8').trim().split('\n')
  assert.deepEqual(
    killed.filter((page) => page === '5'),
    ['5'],
  )
  assert.ok(killed.filter((page) => page === '21').length >= 2)
  assert.deepEqual(await query(`select attempt, status from job where name = 'documents.extract'`), [
    { attempt: 1, status: 'done' },
  ])
})
