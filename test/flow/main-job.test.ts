import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildTextPdf } from '../pdfs.ts'
import { getSharedService } from './shared-service.ts'

const client = await (await getSharedService()).client()

test('extracts an uploaded PDF and streams its pages', async () => {
  const uploaded = await client.upload(await buildTextPdf(7), 'report.pdf')
  assert.equal(uploaded.status, 201)
  const { id } = (await uploaded.json()) as { id: number }

  const started = await client.post(`/api/v1/documents/${id}/extract?background=true`)
  assert.equal(started.status, 202)
  const { job_id } = (await started.json()) as { job_id: string }
  const stream = await client.stream(`/api/v1/jobs/${job_id}/events`)
  const frames = await stream.waitForEnd()

  const terminal = frames.filter((frame) => frame.data.status === 'done')
  assert.equal(terminal.length, 1)
  assert.deepEqual(terminal[0]!.data.result, { read: 7, unread: 0, skipped: 0 })
  assert.deepEqual(frames.at(-1), terminal[0])
  const ids = frames.map((frame) => Number(frame.id))
  assert.deepEqual(
    ids,
    [...ids].sort((a, b) => a - b),
    'frames come in order',
  )
  assert.equal(new Set(ids).size, ids.length, 'no frame comes twice')
  const labels = frames.flatMap(({ data }) => data.label ?? [])
  assert.match(`${labels.at(-1)}`, /^Pages? (\d to )?7 of 7: text layer$/)

  const pages = (await (await client.fetch(`/api/v1/documents/${id}/pages`)).json()) as {
    status: string
    has_image: boolean
  }[]
  assert.equal(pages.length, 7)
  assert.ok(pages.every((page) => page.status === 'read' && page.has_image))
  const page = (await (await client.fetch(`/api/v1/documents/${id}/pages/3`)).json()) as { text: string }
  assert.match(page.text, /Page 3 of 7/)
  for (const [search, total] of [
    ['"page 3 of 7"', 1],
    ['harb', 1],
    ['"page 8 of 7"', 0],
  ] as const) {
    const found = await client.fetch(`/api/v1/documents?search=${encodeURIComponent(search)}`)
    assert.equal(((await found.json()) as { total: number }).total, total, search)
  }
  const image = await client.fetch(`/api/v1/documents/${id}/pages/3/image`)
  assert.equal(image.headers.get('content-type'), 'image/png')
  assert.deepEqual([...new Uint8Array(await image.arrayBuffer()).subarray(1, 4)], [...Buffer.from('PNG')])
})

test('a second extraction skips pages that were read, and force reads them again', async () => {
  const { id } = (await (await client.upload(await buildTextPdf(3), 'twice.pdf')).json()) as { id: number }
  const extract = async (query = ''): Promise<unknown> =>
    (await client.post(`/api/v1/documents/${id}/extract${query}`)).json()
  assert.deepEqual(await extract(), { read: 3, unread: 0, skipped: 0 })
  assert.deepEqual(await extract(), { read: 0, unread: 0, skipped: 3 })
  assert.deepEqual(await extract('?force=true'), { read: 3, unread: 0, skipped: 0 })
})
