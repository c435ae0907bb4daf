import assert from 'node:assert/strict'
import { createHash, createHmac, pbkdf2Sync, scryptSync } from 'node:crypto'
import { after, describe, test } from 'node:test'
import bcrypt from 'bcryptjs'
import fc from 'fast-check'
import { findHashProblem } from '../../edge/passwords/hashes.ts'
import { createPasswords } from '../../edge/passwords/passwords.ts'
import { createRunOptions } from '../runs.ts'

/** Tests the accepted formats of imported password hashes, and the verification of their passwords. */

const passwords = createPasswords({ concurrency: 2, cost: { memoryCost: 64, timeCost: 1 } })
after(() => passwords.close())

const base64OfLength = (length: number): string =>
  Buffer.alloc(length, 7).toString('base64').replace(/=+$/, '')
const formatArgon2 = (
  parameters: string,
  { salt = base64OfLength(16), hash = base64OfLength(32), kind = 'id', v = '$v=19' } = {},
) => `$argon2${kind}${v}$${parameters}$${salt}$${hash}`
const formatScrypt = (parameters: string, { salt = base64OfLength(16), hash = base64OfLength(32) } = {}) =>
  `$scrypt$${parameters}$${salt}$${hash}`
const formatPbkdf2 = (
  digest: string,
  iterations: number,
  { salt = base64OfLength(16), hash = base64OfLength(32) } = {},
) => `$pbkdf2-${digest}$${iterations}$${salt}$${hash}`
const formatBcrypt = (cost: string, kind = '2b') => `$${kind}$${cost}$${'a'.repeat(53)}`

const SALT = Buffer.from('0123456789abcdef')
const HEX_SALT = SALT.toString('hex')
const formatBytes = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '')
function formatAspNet(prf: number, digest: string, rounds: number, named = rounds): string {
  const head = Buffer.alloc(13, 1)
  head.writeUInt32BE(prf, 1)
  head.writeUInt32BE(named, 5)
  head.writeUInt32BE(SALT.length, 9)
  return Buffer.concat([head, SALT, pbkdf2Sync('password', SALT, rounds, 32, digest)]).toString('base64')
}

// The hashes come from the tests of phc-winner-argon2, RFC 7914, Openwall's crypt_blowfish and passlib. Django 5.2
// generated the others.
const LONG_PASSWORD =
  '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789chars after 72 are ignored'
const KNOWN_HASHES = [
  ['password', '$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$wWKIMhR9lyDFvRz9YTZweHKfbftvj+qf+YFY4NeBbtA'],
  ['password', '$argon2i$m=256,t=2,p=1$c29tZXNhbHQ$/U3YPXYsSb3q9XxHvc0MLxur+GP960kN9j7emXX8zwY'],
  ['password', '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4'],
  [
    'pleaseletmein',
    '$scrypt$ln=14,r=8,p=1$U29kaXVtQ2hsb3JpZGU$cCO9yzr9c0hGHAbNgf046/2o+7qQT44+qbVD9lRdofLVQylVYT8Pz2LUlwUkKpr55h6F3A1lHkDfzwF7RVdYhw',
  ],
  ['U*U', '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'],
  [LONG_PASSWORD, '$2a$05$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui'],
  ['password', '$pbkdf2-sha256$1212$4vjV83LKPjQzk31VI4E0Vw$hsYF68OiOUPdDZ1Fg.fJPeq1h/gXXY7acBp9/6c.tmQ'],
  [
    'password',
    '$pbkdf2-sha512$1212$RHY0Fr3IDMSVO/RSZyb5ow$eNLfBK.eVozomMr.1gYa17k9B7KIK25NOEshvhrSX.esqY3s.FvWZViXz4KoLlQI.BzY/YTNJOiKc5gBYFYGww',
  ],
  ['pässword', 'pbkdf2_sha256$1212$saltsaltsalt$KtjXeLvLdsxkCFb78VrOY09vTvLN6L5f9p8+PVSVtBw='],
  ['pässword', 'bcrypt_sha256$$2b$04$hKBh82OvA62qydzgl2KtBuakCbw0OvTKYqls0YrEwxG0SPOHcNjwS'],
  ['pässword', 'bcrypt$$2b$04$mfb9Lz4KB9QTpVXx/dlh8.BdMuH4PBLbwM9z0mL1TQObsol1PfWWe'],
  [
    'pässword',
    'argon2$argon2id$v=19$m=256,t=2,p=1$bXBSMXpwRTQ5UTBaU3VkRWVZQzNGUw$3l2DAGUA5xi1DW2MX4AoejbafnYPC3aX0TI19lWuviQ',
  ],
  // PHP's `wp_hash_password`, phpass's own test, and Node's scrypt and PBKDF2 in the formats of the others.
  [
    'password',
    `$wp${bcrypt.hashSync(createHmac('sha384', 'wp-sha384').update('password').digest('base64'), 4)}`,
  ],
  ['test12345', '$P$9IQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0'],
  [
    'password',
    `${HEX_SALT}:${scryptSync('password', HEX_SALT, 64, { N: 2 ** 14, r: 16, maxmem: 2 ** 26 }).toString('hex')}`,
  ],
  ['password', formatAspNet(1, 'sha256', 1000)],
  ['password', formatAspNet(2, 'sha512', 1000)],
  ['password', formatAspNet(0, 'sha1', 1000)],
  [
    'password',
    Buffer.concat([Buffer.from([0]), SALT, pbkdf2Sync('password', SALT, 1000, 32, 'sha1')]).toString(
      'base64',
    ),
  ],
  [
    'password',
    `$pbkdf2-sha256$i=1000,l=32$${formatBytes(SALT)}$${formatBytes(pbkdf2Sync('password', SALT, 1000, 32, 'sha256'))}`,
  ],
  [
    'password',
    `$pbkdf2$1212$${formatBytes(SALT)}$${formatBytes(pbkdf2Sync('password', SALT, 1212, 20, 'sha1'))}`,
  ],
] as const

describe('a known hash verifies its password', () => {
  for (const [password, stored] of KNOWN_HASHES)
    test(stored.slice(0, 40), async () => {
      assert.equal(findHashProblem(stored), null)
      assert.equal(await passwords.verify(stored, password), true)
      for (const wrong of [`x${password}`, password.slice(1), '', password.replace(/\w/, '~')])
        assert.equal(await passwords.verify(stored, wrong), false, wrong)
    })

  test('a bcrypt hash verifies under each prefix', async () => {
    const [, stored] = KNOWN_HASHES[4]
    for (const kind of ['$2a$', '$2b$', '$2y$']) {
      const same = stored.replace('$2a$', kind)
      assert.equal(findHashProblem(same), null)
      assert.equal(await passwords.verify(same, 'U*U'), true)
      assert.equal(await passwords.verify(same, 'u*u'), false)
    }
  })
})

describe('the most expensive accepted hash verifies', () => {
  for (const stored of [
    formatBcrypt('12'),
    formatArgon2('m=65536,t=3,p=4'),
    formatScrypt('ln=15,r=8,p=1'),
    formatPbkdf2('sha256', 1_200_000),
    formatPbkdf2('sha512', 600_000),
    `$P$G${'a'.repeat(30)}`,
  ])
    test(stored.slice(0, 40), () => assert.equal(findHashProblem(stored), null))
})

describe('too expensive hashes are rejected', () => {
  for (const [stored, problem] of [
    [formatBcrypt('03'), 'the cost of bcrypt must be 4 to 12'],
    [formatBcrypt('13'), 'the cost of bcrypt must be 4 to 12'],
    [`bcrypt$${formatBcrypt('13')}`, 'the cost of bcrypt must be 4 to 12'],
    [`bcrypt_sha256$${formatBcrypt('31')}`, 'the cost of bcrypt must be 4 to 12'],
    [formatArgon2('m=4194304,t=1,p=1'), 'm of argon2 must be 8 p to 65536'],
    [formatArgon2('m=65537,t=1,p=1'), 'm of argon2 must be 8 p to 65536'],
    [`argon2${formatArgon2('m=102400,t=2,p=8')}`, 'm of argon2 must be 8 p to 65536'],
    [formatArgon2('m=7,t=1,p=1'), 'm of argon2 must be 8 p to 65536'],
    [formatArgon2('m=64,t=4294967295,p=1'), 't of argon2 must be 1 to 3'],
    [formatArgon2('m=64,t=0,p=1'), 't of argon2 must be 1 to 3'],
    [formatArgon2('m=65536,t=4,p=1'), 't of argon2 must be 1 to 3'],
    [formatArgon2('m=65536,t=1,p=17'), 'p of argon2 must be 1 to 16'],
    [formatArgon2('m=65536,t=1,p=0'), 'p of argon2 must be 1 to 16'],
    [formatScrypt('ln=31,r=8,p=1'), 'scrypt: ln must be 1 to 15, r 1 to 64'],
    [formatScrypt('ln=9999999999,r=8,p=1'), 'scrypt: ln must be 1 to 15, r 1 to 64'],
    [formatScrypt('ln=16,r=4,p=1'), 'scrypt: ln must be 1 to 15, r 1 to 64'],
    [formatScrypt('ln=0,r=8,p=1'), 'scrypt: ln must be 1 to 15, r 1 to 64'],
    [formatScrypt('ln=10,r=65,p=1'), 'scrypt: ln must be 1 to 15, r 1 to 64'],
    [formatScrypt('ln=15,r=9,p=1'), 'scrypt: 2^ln r p / 8 must be 32768 or less'],
    [formatScrypt('ln=15,r=8,p=2'), 'scrypt: 2^ln r p / 8 must be 32768 or less'],
    [formatScrypt('ln=10,r=8,p=2147483648'), 'p of scrypt must be 1 to 16'],
    [`$P$H${'a'.repeat(30)}`, 'phpass: log2 of the rounds must be 7 to 18'],
    [`$P$4${'a'.repeat(30)}`, 'phpass: log2 of the rounds must be 7 to 18'],
    [`$wp${formatBcrypt('13')}`, 'the cost of bcrypt must be 4 to 12'],
    [formatAspNet(1, 'sha256', 1000, 1_200_001), 'sha256 iterations must be 1 to 1200000'],
    [formatPbkdf2('sha256', 0), 'sha256 iterations must be 1 to 1200000'],
    [formatPbkdf2('sha256', 1_200_001), 'sha256 iterations must be 1 to 1200000'],
    [formatPbkdf2('sha512', 600_001), 'sha512 iterations must be 1 to 600000'],
    [
      `pbkdf2_sha256$9999999999$${base64OfLength(16)}$${base64OfLength(32)}=`,
      'sha256 iterations must be 1 to 1200000',
    ],
  ] as const)
    test(stored.slice(0, 40), () => assert.equal(findHashProblem(stored), problem))
})

describe('hashes and salts of unsuitable lengths are rejected', () => {
  const SHORT = 'the salt must have 8 to 48 bytes, and the hash 16 to 64'
  const SPELLED = 'salt and hash must be canonical Base 64'
  for (const make of [
    (parts: object) => formatArgon2('m=64,t=1,p=1', parts),
    (parts: object) => formatScrypt('ln=4,r=8,p=1', parts),
    (parts: object) => formatPbkdf2('sha256', 1000, parts),
  ]) {
    test(make({}).slice(0, 12), () => {
      assert.equal(findHashProblem(make({})), null)
      for (const parts of [
        { hash: base64OfLength(1) },
        { hash: base64OfLength(15) },
        { hash: base64OfLength(65) },
        { salt: base64OfLength(7) },
        { salt: base64OfLength(49) },
      ])
        assert.equal(findHashProblem(make(parts)), SHORT, JSON.stringify(parts))
      // Encode the same bytes differently: the last Base64 character has unused bits.
      for (const parts of [{ hash: `${base64OfLength(32).slice(0, -1)}d` }, { salt: 'AAAAAAAAAAAAB' }])
        assert.equal(findHashProblem(make(parts)), SPELLED, JSON.stringify(parts))
    })
  }
})

test('a Django hash has its own Base64 and salt format', () => {
  const hash = 'KtjXeLvLdsxkCFb78VrOY09vTvLN6L5f9p8+PVSVtBw='
  for (const [stored, problem] of [
    [`pbkdf2_sha256$1000$salt salt$${hash}`, null],
    [`pbkdf2_sha256$1000$seasalt$${hash}`, 'the salt must have 8 to 48 bytes, and the hash 16 to 64'],
    [`pbkdf2_sha256$1000$saltsalt$${hash.slice(0, -1)}`, 'salt and hash must be canonical Base 64'],
  ] as const)
    assert.equal(findHashProblem(stored), problem, stored)
})

test('other formats are rejected', () => {
  for (const stored of [
    '',
    'correct horse',
    '5f4dcc3b5aa765d61d8327deb882cf99',
    '$1$salt$qJH7.N4xYta3aEG/dfqo/0',
    '$6$rounds=5000$usesomesillystri$KqJWpanXZHKq2BOB43TSaYhEWsQ1Lr5QNyPCDH/Tp.6',
    'pbkdf2_sha1$260000$saltsaltsalt$KtjXeLvLdsxkCFb78VrOY09vTvLN6L5f9p8=',
    'pbkdf2_sha256$1212$salt$salt$KtjXeLvLdsxkCFb78VrOY09vTvLN6L5f9p8+PVSVtBw=',
    formatPbkdf2('sha1', 1000),
    formatPbkdf2('sha256', 1000, { salt: `${base64OfLength(16)}=` }),
    'scrypt$16384$salt$8$5$KtjXeLvLdsxkCFb78VrOY09vTvLN6L5f9p8+PVSVtBw=',
    `argon2$${formatBcrypt('10')}`,
    `bcrypt${formatBcrypt('10')}`,
    `bcrypt_sha256$${formatArgon2('m=64,t=1,p=1')}`,
    `bcrypt$bcrypt$${formatBcrypt('10')}`,
    formatBcrypt('10', '2x'),
    formatBcrypt('10', '2'),
    formatBcrypt('1'),
    `${formatBcrypt('10')}a`,
    `${formatBcrypt('10')}\n`,
    ` ${formatBcrypt('10')}`,
    formatArgon2('m=64,t=1,p=1', { v: '$v=18' }),
    formatArgon2('m=64,t=1,p=1', { kind: 'x' }),
    formatArgon2('m=64,t=1,p=1,keyid=AAAA'),
    formatArgon2('t=1,m=64,p=1'),
    formatArgon2('m=-64,t=1,p=1'),
    formatArgon2('m=64,t=1,p=1', { hash: `${base64OfLength(32)}=` }),
    formatScrypt('n=16384,r=8,p=1'),
    formatScrypt('ln=4,r=8,p=1', { salt: '' }),
  ])
    assert.match(findHashProblem(stored)!, /^must be a hash of/, stored)
})

test('a wrong password fails for every accepted hash without an error', async () => {
  const small = fc.record({
    kind: fc.constantFrom('id', 'i', 'd'),
    v: fc.constantFrom('', '$v=16', '$v=19'),
    salt: fc.integer({ min: 8, max: 48 }).map(base64OfLength),
    hash: fc.integer({ min: 16, max: 64 }).map(base64OfLength),
    p: fc.integer({ min: 1, max: 16 }),
    t: fc.integer({ min: 1, max: 3 }),
    ln: fc.integer({ min: 1, max: 8 }),
    r: fc.integer({ min: 1, max: 64 }),
  })
  await fc.assert(
    fc.asyncProperty(small, fc.string({ unit: 'binary' }), async ({ p, t, ln, r, ...parts }, password) => {
      for (const stored of [
        formatArgon2(`m=${8 * p},t=${t},p=${p}`, parts),
        formatScrypt(`ln=${ln},r=${r},p=${p}`, parts),
        formatBcrypt('04'),
      ]) {
        assert.equal(findHashProblem(stored), null, stored)
        assert.equal(await passwords.verify(stored, password), false, stored)
      }
    }),
    createRunOptions(20),
  )
})

describe('at sign-in', () => {
  const OWN = /^\$argon2id\$v=19\$m=64,t=1,p=1\$/

  test('a foreign hash is replaced by ours after a successful sign-in', async () => {
    const stored = bcrypt.hashSync('correct horse', 4)
    const { matches, rehashed } = await passwords.verifyAndRehash(stored, 'correct horse')
    assert.equal(matches, true)
    assert.match(rehashed!, OWN)
    assert.equal(await passwords.verify(rehashed, 'correct horse'), true)
    for (const wrong of ['correct hors', ''])
      assert.deepEqual(await passwords.verifyAndRehash(stored, wrong), { matches: false, rehashed: null })
  })

  test('an argon2 hash with other parameters is replaced, and ours is kept', async () => {
    const [, stored] = KNOWN_HASHES[2]
    assert.match((await passwords.verifyAndRehash(stored, 'password')).rehashed!, OWN)
    const own = await passwords.hash('password')
    assert.deepEqual(await passwords.verifyAndRehash(own, 'password'), { matches: true, rehashed: null })
    assert.deepEqual(await passwords.verifyAndRehash(null, 'password'), { matches: false, rehashed: null })
  })

  test('a bcrypt hash over a digest is replaced for any password length', async () => {
    const password = 'ü'.repeat(60)
    const digest = createHash('sha256').update(password).digest('hex')
    const stored = `bcrypt_sha256$${bcrypt.hashSync(digest, 4)}`
    assert.match((await passwords.verifyAndRehash(stored, password)).rehashed!, OWN)
    assert.deepEqual(await passwords.verifyAndRehash(stored, `${password}!`), {
      matches: false,
      rehashed: null,
    })
  })

  test('a bcrypt hash stays if the password exceeds the length that bcrypt reads', async () => {
    const long = 'ü'.repeat(36)
    const stored = bcrypt.hashSync(long, 4)
    for (const password of [`${long}!`, `${long}?`])
      assert.deepEqual(await passwords.verifyAndRehash(stored, password), { matches: true, rehashed: null })
    assert.match((await passwords.verifyAndRehash(stored, long)).rehashed!, OWN)
  })
})
