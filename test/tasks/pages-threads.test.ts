/** This file is also the thread of its own tests: the default export is piscina's task. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { Piscina } from 'piscina'
import { closeVision, openPages } from '../../workers/providers/pages.ts'
import { deepPdf, mixedPdf } from '../pdfs.ts'

interface Read {
  readonly methods: string[]
  readonly texts: string[]
  readonly sizes: number[]
}

export default async function readAll(bytes: Uint8Array): Promise<Read> {
  const reader = await openPages(bytes, 'application/pdf', { vision: 'tesseract' })
  const read: Read = { methods: [], texts: [], sizes: [] }
  for (let n = 1; n <= reader.pageCount; n++) {
    const { method, text, image } = await reader.read(n)
    read.methods.push(method)
    read.texts.push(text.slice(0, 11))
    read.sizes.push(image?.width ?? 0)
  }
  await reader.close()
  return read
}

const expected: Read = {
  methods: ['text_layer', 'vision'],
  texts: ['Page 1 of 2', 'Page 2 of 2'],
  sizes: [1240, 1240],
}

// piscina's threads have workerData of their own, so the task is not run twice there.
const own = (workerData as { documents?: Uint8Array[] } | null)?.documents

if (isMainThread) {
  test('in a worker thread that ends by itself', async () => {
    const documents = [await mixedPdf(2, [2]), deepPdf(), deepPdf('content'), await mixedPdf(2, [2])]
    const worker = new Worker(new URL(import.meta.url), { workerData: { documents } })
    const [read, code] = await new Promise<[Read[], number]>((resolve, reject) => {
      let read: Read[] = []
      worker.on('message', (message) => (read = message))
      worker.on('error', reject)
      worker.on('exit', (code) => resolve([read, code]))
    })
    assert.equal(code, 0)
    assert.deepEqual([read[0], read[3]], [expected, expected])
    assert.deepEqual(read[1]!.methods, ['none'])
  })

  test('in a piscina pool, task after task', async () => {
    const filename = fileURLToPath(import.meta.url)
    const pool = new Piscina({ filename, atomics: 'disabled', minThreads: 1, maxThreads: 1 })
    try {
      for (let i = 0; i < 2; i++) assert.deepEqual(await pool.run(await mixedPdf(2, [2])), expected)
    } finally {
      await pool.destroy()
    }
  })

  test('a pool thread that is killed over a page takes its engine along', async () => {
    const filename = fileURLToPath(import.meta.url)
    const pool = new Piscina({ filename, atomics: 'disabled', minThreads: 1, maxThreads: 1 })
    try {
      await pool.run(await mixedPdf(1, [1]))
      const abort = new AbortController()
      const running = pool.run(await mixedPdf(2, [1, 2], { sentences: 30 }), { signal: abort.signal })
      setImmediate(() => abort.abort())
      await assert.rejects(running, { name: 'AbortError' })
      assert.deepEqual(await pool.run(await mixedPdf(2, [2])), expected)
    } finally {
      await pool.destroy()
    }
  })
} else if (own) {
  const read: Read[] = []
  for (const bytes of own) read.push(await readAll(bytes))
  parentPort!.postMessage(read)
  await closeVision()
}
