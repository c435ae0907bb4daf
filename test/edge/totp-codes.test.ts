import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  createTotpSecret,
  createTotpSetup,
  findMatchingStep,
} from '../../edge/routes/accounts/one-time-codes.ts'
import { createRecoveryCodes, digestRecoveryCode } from '../../tasks/accounts/tokens.ts'
import { computeCode, decodeBase32 } from '../totp.ts'

/** Tests one-time codes against the vectors of the RFCs, and recovery codes. */

const secret = Buffer.from('12345678901234567890')

describe('one-time codes', () => {
  // RFC 4226, appendix D: codes of the first counters. Here the time steps are the counters.
  const HOTP = '755224 287082 359152 969429 338314 254676 287922 162583 399871 520489'.split(' ')
  test('match RFC 4226', () => {
    for (const [step, code] of HOTP.entries()) {
      assert.equal(findMatchingStep(secret, code, step * 30_000), step)
      assert.equal(computeCode(secret, step), code)
    }
  })

  // RFC 6238, appendix B, SHA-1: the last six of the eight digits.
  for (const [seconds, code] of [
    [59, '94287082'],
    [1111111109, '07081804'],
    [1111111111, '14050471'],
    [1234567890, '89005924'],
    [2000000000, '69279037'],
    [20000000000, '65353130'],
  ] as const)
    test(`match RFC 6238 at ${seconds} s`, () => {
      const step = Math.floor(seconds / 30)
      assert.equal(findMatchingStep(secret, code.slice(2), seconds * 1000), step)
      assert.equal(computeCode(secret, step), code.slice(2))
    })

  test('are accepted at most one step early or late', () => {
    const now = 1_700_000_000_000
    const step = Math.floor(now / 30_000)
    const taken = [-3, -2, -1, 0, 1, 2, 3].map((off) =>
      findMatchingStep(secret, computeCode(secret, step + off), now),
    )
    assert.deepEqual(taken, [-1, -1, step - 1, step, step + 1, -1, -1])
  })

  test('are rejected if malformed', () => {
    for (const code of ['', '0', '12345', '1234567', 'abcdef', '२८७०८२', ' 28708', '-28708', '287082\n'])
      assert.equal(findMatchingStep(secret, code, 59_000), -1, JSON.stringify(code))
  })

  test('have a random 160-bit secret, which an app reads from the URI', () => {
    const own = createTotpSecret()
    assert.equal(own.length, 20)
    assert.notDeepEqual(own, createTotpSecret())
    const setup = createTotpSetup(own, 'millrace', 'a+b&c=d@example.com')
    assert.deepEqual(decodeBase32(setup.secret), own)
    const uri = new URL(setup.uri)
    assert.equal(`${uri.protocol}//${uri.host}`, 'otpauth://totp')
    assert.equal(decodeURIComponent(uri.pathname), '/millrace:a+b&c=d@example.com')
    assert.deepEqual(Object.fromEntries(uri.searchParams), {
      ...{ issuer: 'millrace', secret: setup.secret, algorithm: 'SHA1', digits: '6', period: '30' },
    })
  })
})

describe('recovery codes', () => {
  test('are ten random codes of 80 bits', () => {
    const codes = createRecoveryCodes()
    assert.equal(new Set(codes).size, 10)
    for (const code of codes) assert.match(code, /^([0-9a-hjkmnp-tv-z]{4}-){3}[0-9a-hjkmnp-tv-z]{4}$/)
    assert.equal(new Set([...codes, ...createRecoveryCodes()]).size, 20)
  })

  test('are accepted in any spelling', () => {
    const digest = digestRecoveryCode('a0b1-c2d3-e4f5-g6h7')
    for (const typed of [
      'A0B1C2D3E4F5G6H7',
      ' aOb1-c2d3 e4f5-g6h7',
      'aobl-c2d3-e4f5-g6h7',
      'AoBI-C2D3-E4F5-G6H7',
    ])
      assert.deepEqual(digestRecoveryCode(typed), digest, typed)
    assert.notDeepEqual(digestRecoveryCode('a0b1-c2d3-e4f5-g6h8'), digest)
  })
})
