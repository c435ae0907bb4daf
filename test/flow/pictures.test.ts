import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testDatabase } from '../database.ts'
import { textPdf } from '../pdfs.ts'
import { startProcess } from '../service.ts'
import { clientOf, startReader } from './reader.ts'

const { url, query } = await testDatabase()
const client = await startReader(url, { REQUEST_WAIT_SECONDS: '30' })

test('a picture is drawn for whoever asks first, once, and kept', async () => {
  const worker = await startProcess('worker', url, { WORKER_QUEUES: 'documents,pictures' })
  const { id } = (await (await client.upload(await textPdf(2), 'two.pdf')).json()) as { id: number }
  await client.post(`/api/v1/documents/${id}/extract`)
  const image = () => client.fetch(`/api/v1/documents/${id}/pages/1/image`)
  const answers = await Promise.all([image(), image(), image()])
  const bytes = await Promise.all(answers.map(async (answer) => Buffer.from(await answer.arrayBuffer())))
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  )
  assert.ok(bytes.every((each) => each.equals(bytes[0]!)))
  const tag = answers[0]!.headers.get('etag')!
  const again = await client.fetch(`/api/v1/documents/${id}/pages/1/image`, {
    headers: { 'if-none-match': tag },
  })
  assert.equal(again.status, 304)
  assert.equal((await query(`select 1 from job where name = 'documents.draw'`)).length, 1)
  const rows = await query(
    'select image is not null as drawn from document_page where document_id = $1 order by page_number',
    [id],
  )
  assert.deepEqual(rows, [{ drawn: true }, { drawn: false }])
  await worker.kill('SIGTERM')
})

test('a picture that is not drawn in time is asked for again later', async () => {
  const reader = await clientOf(url, { REQUEST_WAIT_SECONDS: '0' })
  reader.token = client.token
  const [page] = await query('select document_id from document_page where image is null')
  const answer = await reader.fetch(`/api/v1/documents/${page!.document_id}/pages/2/image`)
  assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '5'])
  assert.deepEqual(await answer.json(), { detail: 'The image is still being rendered; try again shortly' })
})

test('a picture of a page that was read anew while it was drawn is asked for again later', async () => {
  // As when another extraction has stored the page: what is drawn of the former one goes nowhere.
  await query(`create function nowhere() returns trigger language plpgsql as 'begin return null; end'`)
  await query(
    'create trigger nowhere before update of image on document_page for each row execute function nowhere()',
  )
  const worker = await startProcess('worker', url, { WORKER_QUEUES: 'documents,pictures' })
  const [page] = await query('select document_id from document_page where image is null')
  const answer = await client.fetch(`/api/v1/documents/${page!.document_id}/pages/2/image`)
  assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '5'])
  await worker.kill('SIGTERM')
})
