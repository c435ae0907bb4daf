import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { describeFailure } from '../../edge/cli/failure.ts'
import { clean, createOutput } from '../../edge/cli/output.ts'
import { RequestError } from '../../edge/client/connection.ts'
import { runCli } from './cli-help.ts'

/** Texts and failures of the command line, without a service. */

describe('output', () => {
  const create = (isTTY: boolean, env: Record<string, string> = {}, columns = 20) => {
    const texts = { out: '', err: '' }
    const capture = (name: 'out' | 'err') => ({
      isTTY,
      columns,
      write: (text: string) => {
        texts[name] += text
      },
    })
    const io = { stdout: capture('out'), stderr: capture('err'), env } as never
    return { output: createOutput(io, false), out: () => texts.out, err: () => texts.err }
  }

  test('has colours and a cut at the width only on a terminal', () => {
    const row = ['1', ['green', 'done'], 'a long detail of a job'] as const
    const pipe = create(false)
    pipe.output.table(['ID', 'STATUS', 'DETAIL'], [row])
    assert.equal(pipe.out(), 'ID  STATUS  DETAIL\n1   done    a long detail of a job\n')
    const terminal = create(true)
    terminal.output.table(['ID', 'STATUS', 'DETAIL'], [row])
    assert.ok(terminal.out().includes('\u001b[32mdone    \u001b[39m'))
    const plain = create(true, { NO_COLOR: '1' })
    plain.output.table(['ID', 'STATUS', 'DETAIL'], [row])
    assert.equal(plain.out(), 'ID  STATUS  DETAIL\n1   done    a long …\n')
  })

  test('a state replaces the last one on a terminal, and has a line elsewhere', () => {
    const pipe = create(false)
    for (const text of ['one', 'one', 'two']) pipe.output.state(text)
    assert.equal(pipe.err(), 'one\ntwo\n')
    const terminal = create(true, {}, 0)
    for (const text of ['one', 'two']) terminal.output.state(text)
    terminal.output.line('result')
    assert.equal(terminal.err(), 'one\r\u001b[Ktwo\r\u001b[K')
    assert.equal(terminal.out(), 'result\n')
  })

  test('never contains control characters of a job', () => {
    assert.equal(clean('a\u001b[2Jb\r\nc\u009b'), 'a [2Jb c ')
  })
})

describe('a failed request', () => {
  const context = { url: 'http://mill', hasKey: true, scopes: ['jobs:read'] }
  const refuse = (status: number, problem: object | null, headers = {}, more = {}) =>
    describeFailure(new RequestError(new Response(null, { status, headers }), problem as never), {
      ...context,
      ...more,
    })!

  test('shows detail, code, fields and what to do', () => {
    const problem = { detail: 'Nope\u001b', code: 'some.code' }
    assert.deepEqual(refuse(404, problem), { status: 3, lines: ['Nope  (some.code)'] })
    assert.match(
      refuse(401, problem).lines[1]!,
      /^Check MILLRACE_KEY: .* scope jobs:read at http:\/\/mill\/account\/keys\.$/,
    )
    assert.match(
      refuse(401, problem, {}, { hasKey: false }).lines[1]!,
      /^Set MILLRACE_KEY to an API key with the scope jobs:read\./,
    )
    const header = {
      'www-authenticate': 'Bearer realm="Millrace", error="insufficient_scope", scope="webhooks:write"',
    }
    assert.match(refuse(403, problem, header).lines[1]!, /scope webhooks:write\./)
    assert.match(refuse(429, problem).lines[1]!, /^Try again later/)
    assert.match(refuse(500, problem, { 'x-request-id': 'r1' }).lines[1]!, /^Quote the request r1 /)
    const errors = [1, 2].map((n) => ({ loc: ['body', `f${n}`], msg: 'is missing', type: 'x' }))
    assert.deepEqual(refuse(422, { ...problem, errors }).lines.slice(1), [
      '  body.f1: is missing',
      '  body.f2: is missing',
    ])
  })

  test('of something else names the address', () => {
    assert.deepEqual(refuse(404, { detail: 'No such path', code: 'route.missing' }).lines.length, 2)
    assert.match(refuse(404, null).lines[0]!, /^http:\/\/mill answered 404 without an error of Millrace$/)
    assert.equal(refuse(502, null).status, 4)
    const fail = (cause: unknown) => describeFailure(new TypeError('fetch failed', { cause }), context)
    const system = (code: string) => Object.assign(new Error(code), { code })
    assert.match(fail(system('ECONNREFUSED'))!.lines[1]!, /^Start one with `npm start`/)
    assert.match(fail(new AggregateError([system('ECONNREFUSED')]))!.lines[0]!, /^No service answers/)
    assert.match(fail(system('ENOTFOUND'))!.lines[0]!, /is unknown$/)
    assert.deepEqual(fail(system('ECONNRESET')), {
      status: 4,
      lines: ["http://mill can't be reached: ECONNRESET", 'Check MILLRACE_URL or --url.'],
    })
    const timeout = new DOMException('The operation was aborted due to timeout', 'TimeoutError')
    assert.deepEqual(describeFailure(timeout, context)!.lines[0], "http://mill can't be reached: ETIMEDOUT")
    assert.equal(describeFailure(new TypeError('x is not a function'), context), null)
    assert.equal(describeFailure(new Error('a fault'), context), null)
  })

  test('reaches the terminal with status 4 if no service is there', async () => {
    const { status, err } = await runCli(['logs', 'x'], { env: { MILLRACE_URL: 'http://127.0.0.1:9999' } })
    assert.equal(status, 4)
    assert.match(err, /^No service answers at http:\/\/127\.0\.0\.1:9999\n/)
  })
})
