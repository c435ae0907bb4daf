import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  AccountAddress,
  Address,
  normalizeDomain,
  normalizeDomainInSearch,
} from '../../tasks/platform/email-address.ts'

describe('an email address', () => {
  test('has its domain in ASCII and lower case', () => {
    for (const [typed, expected] of [
      ['ann@example.com', 'ann@example.com'],
      [' Ann@Example.COM ', 'Ann@example.com'],
      ['ann@bücher.example', 'ann@xn--bcher-kva.example'],
      ['ann@BÜCHER.example', 'ann@xn--bcher-kva.example'],
      ['ann@bu\u0308cher.example', 'ann@xn--bcher-kva.example'],
      ['ann@xn--bcher-kva.example', 'ann@xn--bcher-kva.example'],
      ['ann@XN--BCHER-KVA.example', 'ann@xn--bcher-kva.example'],
      ['ann@ｅｘａｍｐｌｅ．ｃｏｍ', 'ann@example.com'],
      ['ann@例え。テスト', 'ann@xn--r8jz45g.xn--zckzah'],
      ['иван@пример.рф', null],
      ['ivan@пример.рф', 'ivan@xn--e1afmkfd.xn--p1ai'],
      ['ann@straße.example', 'ann@xn--strae-oqa.example'],
    ] as const)
      assert.equal(Address.safeParse(typed).data ?? null, expected, typed)
    assert.equal(AccountAddress.parse("Ann.O'Neil+x@BÜCHER.example"), "ann.o'neil+x@xn--bcher-kva.example")
  })

  test('has at most 64 bytes before the @, 63 in a label and 254 altogether', () => {
    const label = 'b'.repeat(63)
    const longest = `${'a'.repeat(64)}@${label}.${label}.${'b'.repeat(57)}.com`
    assert.equal(longest.length, 254)
    for (const good of [longest, `a@${label}.com`, `a@${'ü'.repeat(50)}.example`])
      assert.equal(Address.safeParse(good).success, true, good)
    for (const bad of [
      `${'a'.repeat(65)}@example.com`,
      `a@b${label}.com`,
      longest.replace('.com', 'b.com'),
      `a@${'ü'.repeat(60)}.example`,
      `a@example.${'c'.repeat(64)}`,
    ])
      assert.equal(Address.safeParse(bad).success, false, bad)
  })

  test('is refused if it is malformed', () => {
    for (const bad of [
      '',
      '@',
      'ann',
      'ann@',
      '@example.com',
      'ann@example',
      'ann@@example.com',
      'ann@example..com',
      'ann@.example.com',
      'ann@example.com.',
      'ann@-example.com',
      'ann@example-.com',
      'ann@exa_mple.com',
      'ann@127.0.0.1',
      'ann@１２７.0.0.1',
      'ann@[127.0.0.1]',
      'ann@example.com/x',
      'ann@example.com:25',
      'ann@ex%61mple.com',
      'ann@exam\tple.com',
      'ann@exam ple.com',
      'ann@xn--a.example',
      'ann@example.c0m',
      '.ann@example.com',
      'ann..b@example.com',
      'ann.@example.com',
      'a nn@example.com',
      'Ann <ann@example.com>',
      'ann\n@example.com',
      'ann@bob@example.com',
      '\u212aate@example.com',
    ])
      assert.equal(AccountAddress.safeParse(bad).success, false, JSON.stringify(bad))
  })
})

test('a domain is refused if it is no name of two labels', () => {
  assert.equal(normalizeDomain('Mail.Bücher.example'), 'mail.xn--bcher-kva.example')
  for (const bad of ['', 'localhost', '10.0.0.1', 'a/b.example', 'user@host.example'])
    assert.equal(normalizeDomain(bad), null, bad)
})

test('a search text has its domain converted if that changes it', () => {
  for (const [search, expected] of [
    ['bücher', 'xn--bcher-kva'],
    ['ann@bücher.ex', 'ann@xn--bcher-kva.ex'],
    ['@Bücher', '@xn--bcher-kva'],
    ['example.com', null],
    ['Ann@Example', null],
    ['Zoë López', null],
    ['', null],
    ['@', null],
  ] as const)
    assert.equal(normalizeDomainInSearch(search), expected, search)
})
