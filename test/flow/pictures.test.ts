import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildMixedPdf } from '../pdfs.ts'
import { withClient } from '../sql/ledger-help.ts'
import { createClient } from './reader.ts'
import { getSharedService } from './shared-service.ts'

const { query, url, ...service } = await getSharedService()
const client = await service.client()
// Page 3 is a scan.
const pdf = await buildMixedPdf(3, [3])
const { id } = (await (await client.upload(pdf, 'three.pdf')).json()) as { id: number }

test('renders an image once, on the first request, and stores it', async () => {
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
  const drawings = await query('select mailbox, status from job where mailbox like $1', [`picture:${id}/%`])
  assert.deepEqual(drawings, [{ mailbox: `picture:${id}/1`, status: 'done' }])
  const rows = await query(
    'select image is not null as drawn from document_page where document_id = $1 order by page_number',
    [id],
  )
  assert.deepEqual(rows, [{ drawn: true }, { drawn: false }, { drawn: false }])
})

test('returns 503 with Retry-After if the page was replaced during rendering', async () => {
  // This trigger drops the update of the image, as if another extraction had replaced the page meanwhile.
  await query(`create function nowhere() returns trigger language plpgsql as 'begin return null; end'`)
  await query(`create trigger nowhere before update of image on document_page for each row
    when (new.document_id = ${id}) execute function nowhere()`)
  const answer = await client.fetch(`/api/v1/documents/${id}/pages/2/image`)
  assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '5'])
  await query('drop trigger nowhere on document_page')
})

test('returns 503 with Retry-After if rendering takes too long', async () => {
  const reader = await createClient(url, { REQUEST_WAIT_SECONDS: '0' })
  reader.token = client.token
  await withClient(url, async (holding) => {
    // Locks the page's row, so that the image cannot be stored.
    await holding.query('begin')
    await holding.query('select from document_page where document_id = $1 for update', [id])
    const answer = await reader.fetch(`/api/v1/documents/${id}/pages/2/image`)
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '5'])
    assert.deepEqual(await answer.json(), {
      detail: 'The image is still being rendered; try again shortly',
      code: 'document.image_pending',
    })
    await holding.query('commit')
  })
})

test('finds the words of a search on a page, with their places', async () => {
  const find = async (search: string, page = 1) => {
    const path = `/api/v1/documents/${id}/pages/${page}/words?search=${encodeURIComponent(search)}`
    const answer = await client.fetch(path)
    assert.equal(answer.status, 200)
    return (await answer.json()) as {
      text: string
      left: number
      top: number
      width: number
      height: number
    }[]
  }
  const found = await find('Harbóurs')
  assert.ok(found.length > 0)
  for (const { text, left, top, width, height } of found) {
    assert.equal(text, 'harbour')
    assert.ok(left > 0 && top > 0 && left + width < 1 && top + height < 1)
  }
  // The scan has the word in its third line, at 11 points, 22 points behind the margin of 60.
  const [scanned, ...others] = await find('Harbóurs', 3)
  assert.deepEqual([scanned!.text, others], ['harbour', []])
  const points = [
    scanned!.left * 595.28,
    scanned!.top * 841.89,
    scanned!.width * 595.28,
    scanned!.height * 841.89,
  ]
  // The ink of the letters, within two points.
  for (const [i, expected] of [83, 108, 37, 8].entries())
    assert.ok(Math.abs(points[i]! - expected) < 2, `${points}`)
  assert.deepEqual(await find('zebra', 3), [])
  assert.deepEqual(await find('zebra'), [])
  assert.deepEqual(await find('- !'), [])
  const missing = await client.fetch(`/api/v1/documents/${id}/pages/9/words?search=harbour`)
  assert.equal(missing.status, 404)
})
