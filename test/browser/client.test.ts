import assert from 'node:assert/strict'
import { mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { writeClient } from '../client/main.ts'
import { findChromium, SKIP_REASON } from './chromium.ts'
import { signIn, startWatchedService } from './watched-service.ts'

/** Tests the package that `npm run client` generates, in a browser. */

const chromium = findChromium()

describe('the client in a browser', { skip: chromium === null && SKIP_REASON }, async () => {
  if (chromium === null) return
  const { open } = await startWatchedService(chromium)

  test('uploads with progress, and follows a job with the session cookie of the page', async (t) => {
    const folder = join(mkdtempSync(join(tmpdir(), 'millrace-client-')), 'package')
    await writeClient(folder)
    symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(folder, 'node_modules'))
    const entry = join(folder, 'dist/index.js')
    const bundle = { bundle: true, format: 'iife', globalName: 'millrace', write: false } as const
    const { outputFiles } = await build({ entryPoints: [entry], ...bundle })
    const page = await open(t, '/monitor')
    await signIn(page)
    await page.getByText('Live', { exact: true }).waitFor()
    const seen = (await page.evaluate(`(async () => {
      ${outputFiles[0]!.text}
      const client = millrace.createClient({ baseUrl: location.origin })
      const loads = []
      const bytes = 'a mill grinds\\n'.repeat(300_000)
      const document = await client.documents.upload(new File([bytes], 'mill.txt'), {
        kind: 'report',
        onProgress: (progress) => loads.push(progress),
      })
      const refused = await client.documents
        .upload(new File([bytes], 'mill.txt'), { kind: 'x'.repeat(99), onProgress: () => {} })
        .catch((error) => [error.name, error.response.status, error.response.headers.has('x-request-id')])
      const { data } = await client.POST('/api/v1/documents/{id}/extract', {
        params: { path: { id: document.id }, query: { background: true } },
      })
      const states = []
      for await (const frame of client.jobs.events(data.job_id)) states.push(frame.data.status)
      return { document, loads, refused, states, size: bytes.length }
    })()`)) as {
      document: { kind: string; byte_size: number }
      loads: { loaded: number; total: number }[]
      refused: unknown
      states: string[]
      size: number
    }
    assert.deepEqual([seen.document.kind, seen.document.byte_size], ['report', seen.size])
    const last = seen.loads.at(-1)!
    assert.ok(last.loaded === last.total && last.total > seen.size, JSON.stringify(last))
    assert.deepEqual(seen.refused, ['RequestError', 422, true])
    assert.equal(seen.states.at(-1), 'done')
  })
})
