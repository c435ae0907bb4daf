import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { networkKeyOf } from '../../tasks/platform/addresses.ts'
import { parseSettings, SettingsError } from '../../tasks/platform/settings/settings.ts'
import { createRunOptions } from '../runs.ts'

describe('the network of an address', () => {
  const SAME: readonly (readonly [what: string, ...addresses: string[]])[] = [
    [
      'an IPv4 address',
      '192.0.2.1',
      '192.0.2.1:443',
      '::ffff:192.0.2.1',
      '[::ffff:192.0.2.1]:80',
      '::ffff:c000:201',
    ],
    [
      'a site with IPv6',
      '2001:db8:1:2::',
      '2001:db8:1:2::1',
      '2001:0DB8:0001:0002:ffff:ffff:ffff:ffff',
      '[2001:db8:1:2::7]',
      '[2001:db8:1:2::7]:8443',
    ],
    ['a link', 'fe80::1', 'fe80::2', 'fe80::1%eth0'],
    ['this machine', '::1', '[::1]:1'],
    ['nothing', ''],
    ['a text', 'unknown'],
    ['another text', '_hidden'],
    ['almost an address', '192.0.2.1.5'],
    ['the next address', '192.0.2.2'],
    ['the next site', '2001:db8:1:3::1'],
  ]

  for (const [what, ...addresses] of SAME) {
    test(`${what} is the same in every notation`, () => {
      assert.equal(new Set(addresses.map(networkKeyOf)).size, 1, addresses.map(networkKeyOf).join(' '))
    })
  }

  test('other addresses have other networks', () => {
    assert.equal(new Set(SAME.map(([, address]) => networkKeyOf(address!))).size, SAME.length)
  })

  test('is readable for addresses and short for any other header text', () => {
    assert.equal(networkKeyOf('192.0.2.1'), '192.0.2.1')
    assert.equal(networkKeyOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
    const long = networkKeyOf('x'.repeat(10_000))
    assert.ok(long.length < 30 && !long.includes('xxx'))
    assert.notEqual(networkKeyOf('x'.repeat(10_001)), long)
  })

  test('is valid text for PostgreSQL, whatever the input', () => {
    const address = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.ipV4(),
      fc.ipV6(),
      fc.ipV4Extended(),
      fc.ipV6().map((one) => `[${one}]:1`),
      fc.ipV6().map((one) => `${one}%zone`),
    )
    fc.assert(
      fc.property(address, (one) => {
        const network = networkKeyOf(one)
        assert.match(network, /^[\x20-\x7e]{1,50}$/)
      }),
      createRunOptions(),
    )
  })

  test('is equal for two addresses of a /64 and differs for others', () => {
    const groups = fc.array(fc.nat({ max: 0xffff }), { minLength: 8, maxLength: 8 })
    const text = (all: readonly number[]): string => all.map((group) => group.toString(16)).join(':')
    const host = fc.array(fc.nat({ max: 0xffff }), { minLength: 4, maxLength: 4 })
    fc.assert(
      fc.property(groups, host, fc.nat({ max: 63 }), (one, other, bit) => {
        // Avoid the ranges that represent IPv4 addresses.
        one[0] = 0x2000 | (one[0]! & 0x1fff)
        assert.equal(networkKeyOf(text(one)), networkKeyOf(text([...one.slice(0, 4), ...other])))
        const flipped = one.slice()
        flipped[bit >> 4]! ^= 1 << (bit & 15)
        assert.notEqual(networkKeyOf(text(one)), networkKeyOf(text(flipped)))
      }),
    )
  })
})

describe('rate limit settings', () => {
  const NAMES = [
    'RATE_LIMIT_LOGIN',
    'RATE_LIMIT_REGISTER',
    'RATE_LIMIT_PASSWORD_RESET',
    'RATE_LIMIT_INVITE',
  ] as const

  test('are requests per seconds, and 0 for no limit', () => {
    assert.deepEqual(parseSettings({}).limits, {
      login: { max: 30, seconds: 60 },
      register: { max: 30, seconds: 60 },
      passwordReset: { max: 10, seconds: 60 },
      invite: { max: 20, seconds: 3600 },
      export: { max: 5, seconds: 86_400 },
    })
    const given = parseSettings({
      RATE_LIMIT_LOGIN: '0',
      RATE_LIMIT_REGISTER: '1/86400',
      RATE_LIMIT_PASSWORD_RESET: '9999/1',
      RATE_LIMIT_INVITE: '5/3600',
      RATE_LIMIT_EXPORT: '0',
    })
    assert.deepEqual(given.limits, {
      login: null,
      register: { max: 1, seconds: 86_400 },
      passwordReset: { max: 9999, seconds: 1 },
      invite: { max: 5, seconds: 3600 },
      export: null,
    })
  })

  test('prevent the start if invalid, and are named', () => {
    const bad = [
      '30',
      '30/',
      '/60',
      '0/60',
      '30/0',
      '-1/60',
      '1.5/60',
      '30/60s',
      '30 / 60',
      'none',
      '10000/1',
      '1/100000',
      '00',
    ]
    for (const name of NAMES)
      for (const value of bad)
        assert.throws(
          () => parseSettings({ [name]: value }),
          (error) =>
            error instanceof SettingsError && error.problems.some((line) => line.startsWith(`${name}: `)),
          `${name}=${value}`,
        )
  })
})
