import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import type { PageResult } from '../../tasks/context.ts'
import { createChildPool } from '../../workers/children/pool.ts'
import {
  type ChildLease,
  ChildLost,
  type Children,
  type LeaseOptions,
  type LossReason,
} from '../../workers/children/ports.ts'
import { openDocument } from '../../workers/providers/documents/documents.ts'
import { drawPage } from '../../workers/providers/documents/draw.ts'
import type { DocumentOptions } from '../../workers/providers/documents/opened-children.ts'
import {
  buildDeepPdf,
  buildEncryptedPdf,
  buildHugePagePdf,
  buildMixedPdf,
  buildRawPdf,
  buildStreamObject,
  buildTextPdf,
  createPageLines,
} from '../pdfs.ts'
import { createRecordedOutputOptions } from '../recognized.ts'
import { DEPTH } from '../runs.ts'
import { drawSign } from '../sign.ts'
import { until } from '../until.ts'
import { log } from './parts.ts'

/** Reads documents in real child processes. The tests make some of them fail. */

const PDF = 'application/pdf'
const { signal } = new AbortController()
const pageNumbers = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

/** Builds a PDF with one picture on each page. Each picture has an eighth of the pixels of an A4 scan. */
function createPicturePdf(count: number): Uint8Array {
  const pages = pageNumbers(count).flatMap((n) => [
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 432 96] /Contents ${3 * n + 1} 0 R` +
      ` /Resources << /XObject << /Im ${3 * n + 2} 0 R >> >> >>`,
    buildStreamObject('432 0 0 96 0 0 cm /Im Do'),
    buildStreamObject(
      drawSign(`Page ${n} of ${count}`).toBuffer('image/jpeg'),
      '/Type /XObject /Subtype /Image /Width 900 /Height 200 /BitsPerComponent 8 /ColorSpace /DeviceRGB' +
        ' /Filter /DCTDecode',
    ),
  ])
  const kids = pageNumbers(count).map((n) => `${3 * n} 0 R`)
  return buildRawPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids.join(' ')}] /Count ${count} >>`,
    ...pages,
  ])
}

// After a crash, timing decides whether PDFium or pdfjs draws a page. The recorded output covers both.
const recordedOutput = DEPTH === 'quick' ? createRecordedOutputOptions() : {}

function createPool(places = 2) {
  const pool = createChildPool({ log, concurrency: places, ...recordedOutput })
  after(() => pool.close())
  return pool
}
const pool = createPool()
const singleChildPool = createPool(1)

const open = (bytes: Uint8Array, options: Partial<DocumentOptions> = {}, children: Children = pool) =>
  openDocument(children, async () => bytes, {
    mediaType: PDF,
    vision: 'none',
    maxPages: 100,
    signal,
    ...options,
  })

/** Returns children that are lost on requests for which `loses` returns a reason. */
function createLosingChildren(loses: (kind: string, request: unknown) => LossReason | null | undefined) {
  const seen = { leases: 0, withoutPdfium: 0 }
  const children: Children = {
    lease: (async (options: LeaseOptions) => {
      const lease: ChildLease | null = await pool.lease(options)
      seen.leases++
      const ask: ChildLease['ask'] = async (kind, request, limits) => {
        if (kind === 'document.open' && (request as { withoutPdfium: boolean }).withoutPdfium)
          seen.withoutPdfium++
        const why = loses(kind, request)
        if (!why) return lease!.ask(kind, request, limits)
        // Releases the child instead of losing it; children.test.ts covers real losses.
        lease!.release()
        throw new ChildLost(why)
      }
      return lease && { ask, release: () => lease.release(), kill: () => lease.kill(), shouldRelease: false }
    }) as Children['lease'],
  }
  return { children, seen }
}

test('pages are read in parallel, and children serve the next document', async () => {
  for (let round = 0; round < 2; round++) {
    const reader = await open(await buildTextPdf(20))
    const pages = await Promise.all(pageNumbers(reader.pageCount).map((n) => reader.read(n)))
    for (const [i, { text }] of pages.entries()) assert.equal(text, createPageLines(i + 1, 20).join('\n'))
    await reader.close()
  }
  assert.ok(pool.size <= 2, `${pool.size} children`)
})

/** Opens an eight-page document with simulated children. `does` receives each request, and may throw. */
function openSimulated(
  isGranted: (options: LeaseOptions) => boolean,
  does: (kind: string, request: readonly number[]) => unknown,
) {
  const lease = async (options: LeaseOptions) => {
    const ask = async (kind: string, request: readonly number[]) => {
      const answer = await does(kind, request)
      if (kind === 'document.open')
        return { pageCount: 8, unpackedBytes: 4, cpuMs: 0, isLocked: false, attachments: [{}] }
      if (kind === 'document.read') {
        const pages = request.map(() => ({ status: 'read', method: 'text_layer', text: '' }))
        return { pages, cpuMs: 0 }
      }
      return answer ?? null
    }
    return isGranted(options) ? { ask, release: () => {}, kill: () => {}, isDue: false } : null
  }
  return open(Buffer.from('%PDF'), {}, { lease: lease as unknown as Children['lease'] })
}

for (const slow of [true, false])
  test(`pages that take ${slow ? 'longer' : 'less'} than opening are read by ${slow ? 'several children' : 'one child'}`, async (t) => {
    let [leases, now] = [0, 0]
    t.mock.method(performance, 'now', () => now)
    const another = Promise.withResolvers<void>()
    const lease = (): boolean => {
      if (++leases === 2) another.resolve()
      return true
    }
    const reader = await openSimulated(lease, async (kind) => {
      if (kind === 'document.open') now += slow ? 20 : 60_000
      if (kind === 'document.read' && slow) await another.promise
    })
    await Promise.all(pageNumbers(8).map((n) => reader.read(n)))
    assert.equal(leases, slow ? 2 : 1)
    await reader.close()
  })

test('a page that crashes a child is read by the next one, without PDFium', async () => {
  let crashes = 1
  const { children, seen } = createLosingChildren((kind) =>
    kind === 'document.read' && crashes-- > 0 ? 'crash' : null,
  )
  const reader = await open(createPicturePdf(1), { vision: 'tesseract' }, children)
  assert.equal((await reader.read(1)).text, 'Page 1 of 1')
  assert.equal(seen.withoutPdfium, 1)
  await reader.close()
})

for (const [why, detail, tries] of [
  ['crash', 'Reading the page crashed the reader repeatedly', 2],
  ['memory', 'Reading the page exceeds the memory limit', 2],
  ['cpu', 'Reading the page takes more than 28 s of CPU time', 1],
  ['time', 'Reading the page takes too long', 1],
] as const) {
  test(`a page is given up after losing ${tries} children by ${why}, and the others are read`, async () => {
    let lost = 0
    const { children } = createLosingChildren((kind, request) => {
      if (kind !== 'document.read' || !(request as number[]).includes(2)) return null
      lost++
      return why
    })
    const reader = await open(createPicturePdf(3), { vision: 'tesseract' }, children)
    const pages = await Promise.all(pageNumbers(3).map((n) => reader.read(n)))
    assert.deepEqual(
      pages.map(({ status, isGivenUp }) => [status, isGivenUp]),
      [
        ['read', undefined],
        ['unread', true],
        ['read', undefined],
      ],
    )
    assert.deepEqual([pages[1]!.detail, lost], [detail, tries])
    await reader.close()
  })
}

for (const [why, children] of [
  ['cpu', 2],
  ['crash', 3],
] as const)
  test(`a page that loses its children by ${why} is isolated from its batch, and the others are read`, async () => {
    let lost = 0
    const { children: losers } = createLosingChildren((kind, request) => {
      if (kind !== 'document.read' || !(request as number[]).includes(9)) return null
      lost++
      return why
    })
    const reader = await open(await buildTextPdf(24), {}, losers)
    await reader.read(1)
    const pages = await Promise.all(pageNumbers(24).map((n) => reader.read(n)))
    for (const [i, { status, text }] of pages.entries())
      if (i + 1 === 9) assert.equal(status, 'unread')
      else assert.equal(text, createPageLines(i + 1, 24).join('\n'))
    assert.equal(lost, children)
    await reader.close()
  })

/** Opens the same document with a single child. */
function openWithOneChild(t: TestContext, does: (kind: string, pages: readonly number[]) => unknown) {
  // With the clock stopped, reading never seems faster than opening, so the reader immediately asks for a second child.
  t.mock.method(performance, 'now', () => 0)
  return openSimulated(({ ifFree }) => !ifFree, does)
}

test('pages whose child is lost while no other is free wait for the next one', async (t) => {
  let lost = false
  const reader = await openWithOneChild(t, (kind, pages) => {
    if (kind !== 'document.read' || lost || pages.length < 2) return
    lost = true
    throw new ChildLost('crash')
  })
  await reader.read(1)
  const pages = await Promise.all(pageNumbers(8).map((n) => reader.read(n)))
  assert.ok(lost && pages.every(({ status }) => status === 'read'))
  await reader.close()
})

test('a page requested while the child sends an attachment is read afterwards', async (t) => {
  const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<Uint8Array>()]
  const reader = await openWithOneChild(t, (kind) => {
    if (kind !== 'document.attachment') return
    asked.resolve()
    return answer.promise
  })
  const attachment = reader.readAttachment(0)[Symbol.asyncIterator]().next()
  await asked.promise
  const page = reader.read(1)
  await new Promise(setImmediate)
  answer.resolve(new Uint8Array())
  assert.equal((await attachment).done, true)
  assert.equal((await page).status, 'read')
  await reader.close()
})

test('no page of a batch is lost with its child, and a picture in it is read too', async () => {
  let lost = false
  const { children } = createLosingChildren((kind, request) => {
    if (kind !== 'document.read' || lost || (request as number[]).length < 2) return null
    lost = true
    return 'crash'
  })
  const reader = await open(
    await buildMixedPdf(24, [20], { sentences: 2 }),
    { vision: 'tesseract' },
    children,
  )
  await reader.read(1)
  const pages = await Promise.all(pageNumbers(24).map((n) => reader.read(n)))
  assert.equal(lost, true)
  for (const [i, { method, text }] of pages.entries()) {
    assert.equal(method, i === 19 ? 'vision' : 'text_layer')
    assert.match(text, new RegExp(`^Page ${i + 1} of 24`))
  }
  await reader.close()
})

test('a document that cannot be opened within its limit has one page that says so', async () => {
  const reader = await open(buildDeepPdf('tree'), { limits: { cpuMs: 1, wallMs: 60_000 } })
  assert.equal(reader.pageCount, 1)
  const page = await reader.read(1)
  assert.deepEqual([page.status, page.isGivenUp], ['unread', true])
  assert.match(page.detail!, /^Opening the document takes more than/)
})

test('a document that crashes its child is opened without PDFium, and then given up', async () => {
  for (const max of [1, 2, 3]) {
    let lost = 0
    const { children, seen } = createLosingChildren((kind) =>
      kind === 'document.open' && lost++ < max ? 'crash' : null,
    )
    const reader = await open(createPicturePdf(2), { vision: 'tesseract' }, children)
    const page = await reader.read(1)
    if (max < 3) assert.deepEqual([reader.pageCount, page.status], [2, 'read'])
    else assert.equal(page.detail, 'Opening the document crashed the reader repeatedly')
    assert.equal(seen.withoutPdfium, Math.min(max, 2))
    await reader.close()
  }
})

test('a document that crashes PDFium at its opening stays without it, with every child', async () => {
  const { children } = createLosingChildren((kind, request) =>
    kind === 'document.open' && !(request as { withoutPdfium: boolean }).withoutPdfium ? 'crash' : null,
  )
  const reader = await open(createPicturePdf(3), { vision: 'tesseract' }, children)
  assert.equal((await reader.read(1)).status, 'read')
  await until('the child serves others', async () => {
    const lease = await pool.lease({ ifFree: true })
    lease?.release()
    return lease !== null
  })
  assert.deepEqual(
    (await Promise.all([reader.read(2), reader.read(3)])).map(({ status }) => status),
    ['read', 'read'],
  )
  await reader.close()
})

test('after twenty pages that lost a child each, the others are skipped', async () => {
  const { children } = createLosingChildren((kind) => (kind === 'document.read' ? 'cpu' : null))
  const reader = await open(await buildTextPdf(40), {}, children)
  const details: (string | null)[] = []
  for (const n of pageNumbers(40)) details.push((await reader.read(n)).detail)
  const isLeftOut = (detail: string | null): boolean => /skipped because 20 other pages/.test(detail ?? '')
  assert.deepEqual([details.findIndex(isLeftOut), details.filter(isLeftOut).length], [20, 20])
  await reader.close()
})

test('invalid page numbers throw', async () => {
  const reader = await open(await buildTextPdf(2))
  for (const wrong of [0, 3, 1.5, Number.NaN]) await assert.rejects(reader.read(wrong), RangeError)
  await reader.close()
})

test('a long document takes turns with others', async () => {
  const long = await open(createPicturePdf(3), { vision: 'tesseract', sliceMs: 0 }, singleChildPool)
  const done: string[] = []
  const reading = pageNumbers(3).map((n) => long.read(n).then(() => done.push(`long ${n}`)))
  const short = open(await buildTextPdf(1), {}, singleChildPool)
  await (await short).read(1)
  done.push('short')
  await (await short).close()
  await Promise.all(reading)
  assert.notEqual(done.at(-1), 'short')
  await long.close()
})

test('an abort ends the current work', async () => {
  const abort = new AbortController()
  const reader = await open(createPicturePdf(3), { vision: 'tesseract', signal: abort.signal })
  const reading = pageNumbers(3).map((n) => reader.read(n))
  setImmediate(() => abort.abort(new Error('cancelled')))
  for (const page of await Promise.allSettled(reading))
    assert.match(String(page.status === 'rejected' && page.reason), /cancelled/)
  await assert.rejects(reader.read(1), /cancelled/)
  await reader.close()
})

test('closing a document releases its children, and ends the current work', async () => {
  const own = createPool(1)
  const reader = await open(createPicturePdf(2), { vision: 'tesseract' }, own)
  const reading = reader.read(1)
  await until('the work has begun', () => own.size === 1)
  await new Promise(setImmediate)
  await reader.close()
  await assert.rejects(reading)
  const next = await open(await buildTextPdf(1), {}, own)
  assert.equal((await next.read(1)).status, 'read')
  await next.close()
})

test('a page can be drawn, even one of 35 metres, but not that of a text', async () => {
  const options = { mediaType: PDF, maxPages: 100, signal }
  const image = await drawPage(pool, await buildTextPdf(2), 2, options)
  assert.deepEqual([image!.width, image!.height], [1240, 1754])
  const ofText = { ...options, mediaType: 'text/plain' }
  assert.equal(await drawPage(pool, Buffer.from('hello'), 1, ofText), null)
  const huge = await drawPage(pool, await buildHugePagePdf(), 1, options)
  assert.deepEqual([huge!.width, huge!.height], [6318, 6318])
  const locked = buildEncryptedPdf('secret')
  assert.equal(await drawPage(pool, locked, 1, options), null)
  const unlocked = await drawPage(pool, locked, 1, { ...options, password: 'secret' })
  assert.ok(unlocked!.png.length > 1000)
})

test('an attachment of a mail is sent completely, in pieces', async () => {
  const file = Buffer.alloc(2_500_000, 'attached ')
  const mail = `From: a@example.com\nDate: Sat, 14 Mar 2026 10:00:00 +0000\nContent-Type: multipart/mixed; boundary=b\n
--b\n\nHello\n--b\nContent-Type: application/x-own; name="a.bin"\nContent-Disposition: attachment\nContent-Transfer-Encoding: base64\n
${file.toString('base64').replace(/.{76}/g, '$&\n')}\n--b--\n`
  const options = { mediaType: 'message/rfc822', vision: 'none', maxPages: 100, signal } as const
  const { children, seen } = createLosingChildren(() => null)
  const reader = await openDocument(children, async () => Buffer.from(mail), options)
  assert.deepEqual(reader.attachments, [{ name: 'a.bin', mediaType: 'application/x-own' }])
  assert.match((await reader.read(1)).text, /Hello\n\nAttachments:\na\.bin \(2500000 bytes\)$/)
  for (let n = 0; n < 3; n++) {
    const pieces: Uint8Array[] = []
    for await (const piece of reader.readAttachment(0)) pieces.push(piece)
    assert.ok(pieces.length > 2 && Buffer.concat(pieces).equals(file))
  }
  await reader.close()
  assert.equal(seen.leases, 1, 'the mail is opened once')
})

test('a document with too many pages is one unread page', async () => {
  const reader = await open(await buildTextPdf(6), { maxPages: 5 })
  assert.equal(reader.pageCount, 1)
  const { status, detail } = await reader.read(1)
  assert.deepEqual([status, detail], ['unread', 'The document has 6 pages; the limit is 5'])
  await reader.close()
})

/** Starts a model provider that never answers. */
async function startSilentModel(t: TestContext) {
  const silent = createServer().listen(0, '127.0.0.1')
  t.after(() => {
    silent.close()
    silent.closeAllConnections()
  })
  await once(silent, 'listening')
  const baseUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/v1`
  const vision = { provider: 'openai', name: 'm', apiKey: 'k', baseUrl, timeoutSeconds: 60 } as const
  return { asked: () => once(silent, 'connection'), vision }
}

test('children are free for others during a request to a model', async (t) => {
  const { vision, asked } = await startSilentModel(t)
  const abort = new AbortController()
  const reader = await open(createPicturePdf(1), { vision, signal: abort.signal }, singleChildPool)
  const page: Promise<PageResult> = reader.read(1)
  await asked()
  const other = await open(await buildTextPdf(1), {}, singleChildPool)
  assert.equal((await other.read(1)).status, 'read')
  await other.close()
  abort.abort(new Error('cancelled'))
  await assert.rejects(page, /cancelled/)
  await reader.close()
})
