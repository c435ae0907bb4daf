import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readMultipart, type UploadedFile } from '../../edge/files/uploads.ts'
import type { EdgeRequest } from '../../edge/http/server.ts'
import { statusOf } from '../../edge/pipeline/answer/statuses.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { createRunOptions } from '../runs.ts'
import { Client, pollUntil, readResidentMiB, request, serve, startChild } from './fixtures/raw.ts'

const CONTENT_TYPE = 'multipart/form-data; boundary=b'

interface Part {
  readonly head: string
  readonly body: string
}

const fieldPart = (name: string, body: string): Part => ({ head: `form-data; name="${name}"`, body })
const filePart = (body: string, names = 'filename="a.txt"'): Part => ({
  head: `form-data; name="file"; ${names}`,
  body,
})

function encodeForm(parts: readonly Part[], end = '--b--\r\n'): string {
  return (
    parts.map(({ head, body }) => `--b\r\nContent-Disposition: ${head}\r\n\r\n${body}\r\n`).join('') + end
  )
}

/** Returns a request with these body chunks. If `broken` is given, the body throws that error after the last chunk. */
function createRequest(chunks: readonly string[], type = CONTENT_TYPE, broken?: Error): EdgeRequest {
  return {
    header: (name: string) => (name === 'content-type' ? type : ''),
    body: {
      streamTo: async (sink: (chunk: Uint8Array) => unknown, max: number) => {
        let size = 0
        for (const chunk of chunks) {
          size += chunk.length
          if (size > max) throw fail('request.too_large', { limit: max })
          // Give each chunk its own buffer, as the server does, because the reader may free the buffer.
          await sink(Uint8Array.from(chunk, (c) => c.charCodeAt(0)))
        }
        if (broken !== undefined) throw broken
        return size
      },
    },
  } as unknown as EdgeRequest
}

interface ReadForm {
  readonly fields: Record<string, string>
  readonly hadFile: boolean
  readonly content: string
  readonly info: UploadedFile | undefined
}

async function readForm(from: EdgeRequest, maxBytes = 1000): Promise<ReadForm> {
  let content = ''
  let info: UploadedFile | undefined
  const { fields, hadFile } = await readMultipart(from, {
    maxBytes,
    receiveFile: async (given, chunks) => {
      info = given
      for await (const chunk of chunks) content += Buffer.from(chunk).toString('latin1')
    },
  })
  const last = [...fields].map(([name, values]) => [name, values.at(-1)!] as const)
  return { fields: Object.fromEntries(last), hadFile, content, info }
}

/** Reads a form that must fail; returns the failure and the final state of the file's sink. */
async function readFailure(
  from: EdgeRequest,
  maxBytes = 1000,
  fields?: readonly string[],
): Promise<{ failure: Failure; sink: string }> {
  let sink = 'not called'
  const failure = await readMultipart(from, {
    maxBytes,
    ...(fields === undefined ? {} : { fields }),
    receiveFile: async (_, chunks) => {
      sink = 'reading'
      try {
        for await (const _ of chunks);
        sink = 'whole'
      } catch (error) {
        await new Promise(setImmediate)
        sink = error instanceof Failure ? error.code : String(error)
      }
    },
  }).then(
    () => assert.fail('the form was read'),
    (error: unknown) => error,
  )
  assert.ok(failure instanceof Failure, String(failure))
  return { failure, sink }
}

test('reads fields before and after the file', async () => {
  const parts = [
    fieldPart('title', 'Tïtle'),
    filePart('content'),
    fieldPart('note', ''),
    fieldPart('title', 'last'),
  ]
  const utf8 = Buffer.from(encodeForm(parts)).toString('latin1')
  assert.deepEqual(await readForm(createRequest([utf8])), {
    fields: { title: 'last', note: '' },
    hadFile: true,
    content: 'content',
    info: { fileName: 'a.txt', mediaType: 'application/octet-stream' },
  })
})

test('reads the same form from any split into chunks', async () => {
  const tricky = fc.string({
    unit: fc.constantFrom('\r', '\n', '-', '--b', '\r\n--', '\r\n-', 'b', 'x', '\0'),
    maxLength: 40,
  })
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 8 })
  const clean = tricky.filter((text) => !`\r\n${text}\r\n`.includes('\r\n--b'))
  await fc.assert(
    fc.asyncProperty(clean, clean, sizes, async (content, value, cuts) => {
      const text = encodeForm([fieldPart('a', value), filePart(content), fieldPart('z', value)])
      const chunks: string[] = []
      for (let at = 0, i = 0; at < text.length; i++) {
        const size = cuts[i % cuts.length] as number
        chunks.push(text.slice(at, at + size))
        at += size
      }
      const { fields, content: got } = await readForm(createRequest(chunks))
      assert.deepEqual([fields, got], [{ a: value, z: value }, content])
    }),
    createRunOptions(),
  )
})

test('reads a form without a file', async () => {
  const none = { fields: { a: '1' }, hadFile: false, content: '', info: undefined }
  assert.deepEqual(await readForm(createRequest([encodeForm([fieldPart('a', '1')])])), none)
  assert.deepEqual((await readForm(createRequest([encodeForm([])]))).fields, {})
})

test('rejects an undeclared field by name before the rest of the body arrives', async () => {
  const other = { head: 'form-data; name="other"; filename="x"', body: 'x' }
  const titled = { head: 'form-data; name="title"; filename="x"', body: 'x' }
  const options = { maxBytes: 1000, fields: ['title'] }
  for (const [part, loc, msg] of [
    [fieldPart('colour', 'red'), ['body'], 'has no colour; its fields are file, title'],
    [other, ['body'], 'has no other; its fields are file, title'],
    [titled, ['body', 'title'], 'must be text, not a file'],
    [fieldPart('x'.repeat(300), ''), ['body'], `has no ${'x'.repeat(100)}; its fields are file, title`],
  ] as const)
    for (const parts of [
      [part, filePart('content')],
      [filePart('content'), fieldPart('title', 'x'), part],
    ]) {
      const sink = async (_: UploadedFile, chunks: AsyncIterable<Uint8Array>) => {
        for await (const _ of chunks);
      }
      await assert.rejects(
        readMultipart(createRequest([encodeForm(parts)]), { ...options, receiveFile: sink }),
        (error) => {
          const { code, problems } = error as Failure
          assert.equal(code, 'request.invalid')
          assert.deepEqual(
            problems?.map((one) => [one.loc, one.msg]),
            [[loc, msg]],
          )
          return true
        },
      )
    }
  const begun = encodeForm([fieldPart('colour', 'red'), filePart('content')]).slice(0, 100)
  const { failure } = await readFailure(createRequest([begun]), 1000, ['title'])
  assert.equal(failure.code, 'request.invalid')
})

test('enforces the file size limit exactly', async () => {
  assert.equal(
    (await readForm(createRequest([encodeForm([filePart('x'.repeat(1000))])]))).content.length,
    1000,
  )
  const { failure, sink } = await readFailure(createRequest([encodeForm([filePart('x'.repeat(1001))])]))
  assert.deepEqual(
    [failure.code, failure.detail],
    ['request.too_large', 'The body is larger than the limit of 1000 bytes'],
  )
  assert.equal(sink, 'request.too_large')
})

test('limits the whole body and reports the limit of the file', async () => {
  const skipped = { head: 'form-data; name="other"; filename="x"', body: 'x'.repeat(2 * 1024 * 1024) }
  const { failure } = await readFailure(createRequest([encodeForm([skipped])]))
  assert.equal(failure.detail, 'The body is larger than the limit of 1000 bytes')
})

test('limits the size and number of fields', async () => {
  const max = 64 * 1024
  assert.equal(
    (await readForm(createRequest([encodeForm([fieldPart('a', 'x'.repeat(max))])]))).fields.a?.length,
    max,
  )
  const { failure: large } = await readFailure(
    createRequest([encodeForm([fieldPart('a', 'x'.repeat(max + 1))])]),
  )
  assert.equal(large.detail, `The body is larger than the limit of ${max} bytes`)
  const hundred = Array.from({ length: 100 }, (_, i) => fieldPart(`f${i}`, 'x'))
  assert.equal(Object.keys((await readForm(createRequest([encodeForm(hundred)]))).fields).length, 100)
  const { failure: many } = await readFailure(
    createRequest([encodeForm([...hundred, fieldPart('more', 'x')])]),
  )
  assert.match(many.detail, /more than 100 fields/)
})

test('rejects types other than multipart/form-data with 415', async () => {
  for (const type of [
    '',
    'application/json',
    'multipart/mixed; boundary=b',
    'multipart/form-data-x; boundary=b',
  ]) {
    const { failure } = await readFailure(createRequest([encodeForm([])], type))
    assert.deepEqual([failure.code, statusOf(failure.code)], ['request.media_type', 415])
  }
})

test('accepts quoted boundaries in any case, and rejects missing or long ones', async () => {
  const text = encodeForm([fieldPart('a', '1')])
  for (const type of ['multipart/form-data; boundary="b"', 'Multipart/Form-Data;charset=utf-8; BOUNDARY=b']) {
    assert.deepEqual((await readForm(createRequest([text], type))).fields, { a: '1' })
  }
  for (const boundary of [
    '',
    '; boundary=',
    '; boundary=""',
    `; boundary=${'b'.repeat(71)}`,
    '; boundary="b',
  ]) {
    const { failure } = await readFailure(createRequest([text], `multipart/form-data${boundary}`))
    assert.equal(failure.code, 'request.malformed')
  }
})

const BROKEN_FORMS: Readonly<Record<string, [string, string]>> = {
  'an empty body': ['', 'not called'],
  'no boundary at all': ['just text', 'not called'],
  'another boundary': [encodeForm([filePart('x')]).replaceAll('--b', '--c'), 'not called'],
  'no final boundary': [encodeForm([filePart('x'), fieldPart('a', '1')], ''), 'whole'],
  'a file cut short': [encodeForm([filePart('xyz')]).slice(0, -11), 'request.malformed'],
  'a field cut short': [encodeForm([filePart('x'), fieldPart('a', 'value')]).slice(0, -11), 'whole'],
  'headers cut short': ['--b\r\nContent-Disposition: form-da', 'not called'],
  'headers cut by the last boundary': [
    '--b\r\nContent-Disposition: form-data; name="a"\r\n--b--\r\n',
    'not called',
  ],
  'headers cut by a boundary': [
    `--b\r\nContent-Disposition: form-data; name="a"\r\n${encodeForm([fieldPart('z', '1')])}`,
    'not called',
  ],
  'headers that end nowhere': [encodeForm([{ head: 'x'.repeat(100_000), body: '' }]), 'not called'],
  'a part without a name': [encodeForm([{ head: 'form-data', body: 'x' }]), 'not called'],
  'a part that is an attachment': [encodeForm([{ head: 'attachment; name="a"', body: 'x' }]), 'not called'],
  'a part without headers': ['--b\r\n\r\nx\r\n--b--\r\n', 'not called'],
  'two files': [encodeForm([filePart('x'), filePart('y')]), 'whole'],
}

for (const [name, [text, sink]] of Object.entries(BROKEN_FORMS)) {
  test(`${name}: returns 400 for the whole body and byte by byte`, async () => {
    for (const chunks of [[text], [...text]]) {
      const seen = await readFailure(createRequest(chunks), 500_000)
      assert.deepEqual([seen.failure.code, statusOf(seen.failure.code)], ['request.malformed', 400])
      // A complete file before the break may or may not be read, depending on timing. A truncated file must never count
      // as complete.
      if (sink !== 'whole') assert.equal(seen.sink, sink)
    }
  })
}

test('rejects a form that is truncated at any byte, without hanging or accepting a partial file', async () => {
  const text = encodeForm([fieldPart('a', '1'), filePart('0123456789'), fieldPart('z', '2')])
  for (let end = 0; end < text.length - 2; end++) {
    const { failure, sink } = await readFailure(createRequest([text.slice(0, end)]))
    assert.equal(failure.code, 'request.malformed')
    if (end < text.indexOf('0123456789') + 12) assert.notEqual(sink, 'whole')
  }
})

test('propagates errors from the sink, even synchronous ones', async () => {
  const text = encodeForm([filePart('x'.repeat(500)), fieldPart('a', '1')])
  for (const sink of [() => assert.fail('disk full'), async () => assert.fail('disk full')]) {
    await assert.rejects(
      readMultipart(createRequest([...text]), { maxBytes: 1000, receiveFile: sink }),
      /disk full/,
    )
  }
})

test('a sink that stops early or reads nothing does not block the form', async () => {
  const text = encodeForm([filePart('x'.repeat(300_000)), fieldPart('a', '1')])
  const stops = async (_: unknown, chunks: AsyncIterable<Uint8Array>) => {
    for await (const _chunk of chunks) break
  }
  for (const sink of [stops, async () => {}]) {
    const chunks = text.match(/[\s\S]{1,50000}/g) ?? []
    const { fields } = await readMultipart(createRequest(chunks), { maxBytes: 400_000, receiveFile: sink })
    assert.deepEqual(fields.get('a'), ['1'])
  }
})

test('when the client disconnects, the sink throws before the request fails', async () => {
  const text = encodeForm([filePart('x'.repeat(500))]).slice(0, 200)
  const { failure, sink } = await readFailure(createRequest([text], CONTENT_TYPE, fail('request.incomplete')))
  assert.deepEqual([failure.code, sink], ['request.incomplete', 'request.incomplete'])
})

test('over a socket: a client disconnects in the middle of its file', async (t) => {
  let seen = ''
  let begun = false
  const { port } = await serve(t, async (from) => {
    const sink = async (_: unknown, chunks: AsyncIterable<Uint8Array>) => {
      for await (const _chunk of chunks) begun = true
    }
    await readMultipart(from, { maxBytes: 1000, receiveFile: sink }).catch((error: Failure) => {
      seen = error.code
    })
  })
  const text = encodeForm([filePart('x'.repeat(500))])
  const client = await Client.connect(t, port)
  client.send(
    request('POST /', { 'content-type': CONTENT_TYPE, 'content-length': '900' }) + text.slice(0, 300),
  )
  await pollUntil(() => begun, 'the file begins')
  client.socket.destroy()
  await pollUntil(() => seen !== '', 'the upload fails')
  assert.equal(seen, 'request.incomplete')
})

test('multipart memory does not grow with the size of the body', async (t) => {
  const running = await startChild(t)
  const MiB = 1024 * 1024
  const [head, tail] = encodeForm([filePart('|')]).split('|') as [string, string]
  const client = await Client.connect(t, running.port)
  const length = String(head.length + 300 * MiB + tail.length)
  client.send(request('POST /upload', { 'content-type': CONTENT_TYPE, 'content-length': length }) + head)
  const before = await readResidentMiB(running.pid)
  const piece = Buffer.alloc(MiB, 'x')
  let max = 0
  for (let i = 0; i < 300; i++) {
    await new Promise((resolve) => client.socket.write(piece, resolve))
    if (i % 5 === 0) max = Math.max(max, await readResidentMiB(running.pid))
  }
  await client.send(tail).waitForText(String(300 * MiB))
  // Each byte is copied once, and V8 may keep about 100 MB of copies before it collects them.
  assert.ok(max - before < 150, `300 MiB of upload added ${(max - before).toFixed(1)} MiB`)
})

test('frees a chunk only when the reader asks for the next one', async () => {
  const body = encodeForm([filePart('x'.repeat(5000)), fieldPart('note', 'behind')])
  const chunks = Array.from({ length: Math.ceil(body.length / 700) }, (_, n) =>
    Uint8Array.from(body.slice(n * 700, n * 700 + 700), (c) => c.charCodeAt(0)),
  )
  const freed: number[] = []
  const from = createRequest([])
  from.body.streamTo = async (sink) => {
    for (const [n, chunk] of chunks.entries()) {
      await sink(chunk)
      if (chunk.length === 0) freed.push(n)
    }
    return body.length
  }
  let content = ''
  const { fields } = await readMultipart(from, {
    maxBytes: 10_000,
    receiveFile: async (_, pieces) => {
      for await (const piece of pieces) {
        for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
        content += Buffer.from(piece).toString('latin1')
      }
    },
  })
  assert.equal(content, 'x'.repeat(5000))
  assert.deepEqual(fields.get('note'), ['behind'])
  // The chunks in which the file starts (0) and ends (7) are not freed.
  assert.deepEqual(freed, [1, 2, 3, 4, 5, 6])
})
