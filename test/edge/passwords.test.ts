import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { after, describe, test } from 'node:test'
import bcrypt from 'bcryptjs'
import { createPasswords } from '../../edge/passwords/passwords.ts'
import type { Failure } from '../../sql/errors.ts'

const passwords = createPasswords({ concurrency: 2 })
after(() => passwords.close())

/** Returns the nice values of this process's threads. */
const readNiceness = (): number[] =>
  readdirSync('/proc/self/task').map((thread) => {
    const text = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8')
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[16])
  })

describe('passwords', () => {
  test('a hash is argon2id with its own salt and verifies its password', async () => {
    const [one, other] = await Promise.all([passwords.hash('correct horse'), passwords.hash('correct horse')])
    assert.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    assert.notEqual(one, other)
    assert.equal(await passwords.verify(one, 'correct horse'), true)
    for (const wrong of ['correct hors', 'correct horse ', 'Correct horse', '', 'x'.repeat(1024)])
      assert.equal(await passwords.verify(one, wrong), false)
  })

  test('any text can be a password', async () => {
    for (const text of ['ünïcödé ✓', '\0\0\0', '🜁'.repeat(500)])
      assert.equal(await passwords.verify(await passwords.hash(text), text), true)
  })

  test('without a hash every password is wrong, even that of the dummy hash', async () => {
    for (const text of ['x', 'no account has this password'])
      assert.equal(await passwords.verify(null, text), false)
  })

  test('many concurrent calls each get their own answer', async () => {
    const cheap = createPasswords({ concurrency: 2, cost: { memoryCost: 64, timeCost: 1 } })
    const hash = await cheap.hash('number 7')
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) => cheap.verify(i % 3 ? hash : null, `number ${i % 10}`)),
    )
    await cheap.close()
    assert.deepEqual(
      answers,
      Array.from({ length: 30 }, (_, i) => i % 3 !== 0 && i % 10 === 7),
    )
  })

  test('an invalid hash fails only its own call', async () => {
    const hash = await passwords.hash('correct horse')
    const ends = await Promise.allSettled([
      passwords.verify('no hash', 'x'),
      passwords.verify(hash, 'correct horse'),
      passwords.verify('$argon2id$broken', 'x'),
      passwords.verify(hash, 'correct horse'),
    ])
    assert.deepEqual(
      ends.map((end) => (end.status === 'fulfilled' ? end.value : 'failed')),
      ['failed', true, 'failed', true],
    )
    for (const end of ends)
      if (end.status === 'rejected') assert.doesNotMatch(String(end.reason), /correct horse/)
  })

  test('foreign hashes wait for each other and delay no others', async () => {
    const mixed = createPasswords({ concurrency: 1, cost: { memoryCost: 64, timeCost: 1 } })
    const [own, dear] = [await mixed.hash('correct horse'), bcrypt.hashSync('correct horse', 10)]
    const ended: string[] = []
    const foreign = Array.from({ length: 3 }, (_, i) =>
      mixed.verify(dear, 'wrong horse').then(() => ended.push(`foreign ${i}`)),
    )
    for (let i = 0; i < 3; i++) {
      assert.equal(await mixed.verify(own, 'correct horse'), true)
      assert.equal(await mixed.verify(null, 'correct horse'), false)
      ended.push(`own ${i}`)
    }
    await Promise.all(foreign)
    await mixed.close()
    assert.deepEqual(ended, ['own 0', 'own 1', 'own 2', 'foreign 0', 'foreign 1', 'foreign 2'])
  })

  test('too many concurrent foreign hashes are rejected, and our own are not', async () => {
    const mixed = createPasswords({ concurrency: 1, cost: { memoryCost: 64, timeCost: 1 } })
    const cheap = bcrypt.hashSync('correct horse', 4)
    const ends = await Promise.allSettled(
      Array.from({ length: 60 }, () => mixed.verify(cheap, 'wrong horse')),
    )
    const refused = ends.filter((end) => end.status === 'rejected')
    assert.equal(refused.length, 60 - 41, 'one under way, 40 waiting')
    for (const { reason } of refused) assert.equal((reason as Failure).code, 'request.limited')
    assert.equal(await mixed.verify(cheap, 'correct horse'), true)
    await mixed.close()
  })

  test('only its threads run at a lower priority', {
    skip: process.platform !== 'linux',
  }, async () => {
    const gentle = (): number => readNiceness().filter((nice) => nice > getPriority(0)).length
    const before = gentle()
    const fresh = createPasswords({ concurrency: 2 })
    const foreign = fresh.verify(bcrypt.hashSync('one', 4), 'one')
    await Promise.all([fresh.hash('one'), fresh.hash('two'), foreign])
    assert.equal(getPriority(0), getPriority(process.pid))
    assert.equal(gentle(), before + 3)
    await fresh.close()
  })

  test('the next password after a close starts a thread again', async () => {
    const short = createPasswords({ concurrency: 1 })
    const hash = await short.hash('correct horse')
    await short.close()
    assert.equal(await short.verify(hash, 'correct horse'), true)
    await short.close()
  })
})
