import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mapDatabaseError, mapShortage } from '../../sql/error-mapping.ts'
import { Failure, fail } from '../../sql/errors.ts'

/** Shortages of the machine are recognized, however deep they are in an error. */

const withCode = (code: string) => Object.assign(new Error('failed'), { code })
const codeOf = (error: unknown) => (error instanceof Failure ? error.code : null)

test('a shortage is recognized by its code, its errno or its cause', () => {
  const errors = [
    ...[
      'EMFILE',
      'ENFILE',
      'ENOMEM',
      'ENOSPC',
      'EDQUOT',
      'EAGAIN',
      'EADDRNOTAVAIL',
      'ERR_MODULE_NOT_FOUND',
    ].map(withCode),
    // nodemailer replaces the code, but keeps the errno.
    Object.assign(new Error('connect'), { code: 'ESOCKET', errno: -24 }),
    new Error('the client failed', { cause: new Error('fetch failed', { cause: withCode('EMFILE') }) }),
    fail('ai.failed', { reason: 'no answer' }, { cause: withCode('ENFILE') }),
  ]
  assert.deepEqual(
    errors.map((error) => codeOf(mapShortage(error))),
    errors.map(() => 'service.short'),
  )
})

test('other errors are returned unchanged', () => {
  for (const error of [withCode('ECONNRESET'), new Error('EMFILE'), fail('job.timeout'), 'EMFILE', null])
    assert.equal(mapShortage(error), error)
})

test('a connection that the machine could not open is an outage, which costs no try', () => {
  const failure = mapDatabaseError(withCode('EMFILE'))
  assert.equal(codeOf(failure), 'database.down')
  const codes = [
    'database.down',
    'service.short',
    'provider.paused',
    'provider.rate_limited',
    'database.busy',
    'job.cancelled',
  ] as const
  assert.deepEqual(
    codes.map((code) => fail(code).retry),
    ['free', 'free', 'free', 'free', 'later', 'never'],
  )
})

test('a statement that somebody cancels costs no try, unlike one that is too slow', () => {
  const cancelled = (reason: string) =>
    Object.assign(new Error(`canceling statement due to ${reason}`), { code: '57014' })
  assert.deepEqual(
    ['user request', 'statement timeout'].map((reason) => codeOf(mapDatabaseError(cancelled(reason)))),
    ['database.down', 'database.too_slow'],
  )
})
