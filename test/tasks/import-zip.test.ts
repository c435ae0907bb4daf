import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { listItems } from '../../tasks/blog/items.ts'
import { createTestDatabase } from '../database.ts'
import { packRepeat } from '../packing.ts'
import { buildRawZip, createZip, type RawEntry } from '../zip.ts'
import { createImports } from './import-help.ts'

/** Imports archives from untrusted sources. */

const database = await createTestDatabase()
const { send, exported, clear } = createImports(database)

const post = (name: string, title = name): RawEntry => ({
  name,
  data: Buffer.from(`---\ntitle: ${title}\n---\n${title}`),
})

async function assertRefused(bytes: Buffer, reason: string | RegExp): Promise<void> {
  await clear()
  const { error, uploadId } = await send('posts.zip', bytes)
  assert.ok(error, 'it is refused')
  assert.deepEqual([error.code, error.retryable], ['import.refused', false])
  assert.match(
    error.detail,
    reason instanceof RegExp ? reason : new RegExp(`^The file cannot be imported: ${reason}`),
  )
  assert.deepEqual(await exported(), [], 'nothing of it is there')
  assert.deepEqual(await database.query('select 1 from blog_upload where id = $1', [uploadId]), [])
}

test('the helper creates valid archives', async () => {
  await clear()
  const { result } = await send('posts.zip', buildRawZip([post('one.md'), { ...post('two.md'), method: 0 }]))
  assert.deepEqual(result, { created: 2, updated: 0, skipped: 0, failed: 0, errors: [] })
})

test('posts are found anywhere, and folders, pictures, hidden files and macOS files are skipped', async () => {
  await clear()
  const files = [
    ['blog/2020-01-02-one.md', '---\ntitle: One\n---\n1'],
    ['blog/two/index.md', '2'],
    ['blog/_drafts/three.MARKDOWN', '3'],
    ['blog/a.png', Buffer.from([0x89, 0x50])],
    ['README.txt', 'x'],
    ['__MACOSX/blog/._2020-01-02-one.md', Buffer.from([0, 5, 22, 7])],
    ['blog/.hidden.md', 'x'],
    ['blog/.md', 'x'],
    ['日本.md', 'x'],
  ] as const
  const { result } = await send('posts.zip', createZip(files))
  const { errors, ...counts } = result!
  assert.deepEqual(counts, { created: 4, updated: 0, skipped: 5, failed: 0 })
  assert.deepEqual(
    errors.map(({ slug, file, message }) => [slug, file, message]),
    [
      [null, 'blog/a.png', 'Not a post: only .md, .markdown and .mdx files are read'],
      [null, 'README.txt', 'Not a post: only .md, .markdown and .mdx files are read'],
      [null, '__MACOSX/blog/._2020-01-02-one.md', 'Not a post: it is hidden'],
      [null, 'blog/.hidden.md', 'Not a post: it is hidden'],
      [null, 'blog/.md', 'Not a post: it is hidden'],
    ],
  )
  assert.deepEqual(
    (await exported()).map(({ slug, status }) => `${slug} ${status}`),
    ['one published', 'two published', 'three draft', 'ri-ben published'],
  )
})

test('names without a declared encoding are decoded', async () => {
  for (const [hex, slug] of [
    ['e697a5e69cac', 'ri-ben'],
    ['93fa967b8cea82cc8b4c8e96', 'ri-ben-yu-noji-shi'],
    ['c4e3bac3bbfac6f7d1a7cfb0c8ebc3c5', 'ni-hao-ji-qi-xue-xi-ru-men'],
    ['636166 82', 'cafe'],
  ] as const) {
    await clear()
    const nameBytes = Buffer.concat([Buffer.from(hex.replaceAll(' ', ''), 'hex'), Buffer.from('.md')])
    await send('posts.zip', buildRawZip([{ ...post('x.md', ''), flags: 0, nameBytes }]))
    assert.equal((await exported())[0].slug, slug)
  }
  const nameBytes = Buffer.concat([Buffer.from('../'), Buffer.from('93fa967b', 'hex'), Buffer.from('.md')])
  await assertRefused(
    buildRawZip([{ ...post('x.md'), flags: 0, nameBytes }]),
    'a path in the archive leads out of it',
  )
})

test('an archive without posts or entries imports nothing, and the answer says so', async () => {
  for (const [zip, skipped] of [
    [buildRawZip([]), 0],
    [createZip([['a.txt', 'x']]), 1],
  ] as const) {
    const { errors, ...counts } = (await send('posts.zip', zip)).result!
    assert.deepEqual(counts, { created: 0, updated: 0, skipped, failed: 0 })
    assert.deepEqual(errors[0], {
      slug: null,
      file: 'posts.zip',
      message: 'No post was found in the archive',
    })
    assert.equal(errors.length, skipped + 1)
  }
})

test('unreadable posts are reported, and do not stop the others', async () => {
  await clear()
  const { result } = await send(
    'posts.zip',
    createZip([
      ['good.md', 'x'],
      ['a/Bad One.md', '---\ntitle: [\n---\n'],
      ['latin1.md', Buffer.from([0x63, 0x61, 0x66, 0xe9])],
      ['large.md', Buffer.from(Array.from({ length: 300_000 }, (_, i) => `line ${i} of many\n`).join(''))],
      ['dated.md', '---\ntitle: Dated\nslug: when\ndate: soon\n---\n'],
      ['nul.md', 'a\0b'],
      ['fine.md', 'x'],
    ]),
  )
  assert.deepEqual([result!.created, result!.failed], [2, 5])
  assert.deepEqual(
    result!.errors.map(({ slug, file, message }) => [slug, file, message.split(':')[0]]),
    [
      ['bad-one', 'a/Bad One.md', 'The front matter is not valid YAML'],
      ['latin1', 'latin1.md', 'The file is not valid UTF-8'],
      ['large', 'large.md', 'The file exceeds the size limit for a post'],
      ['when', 'dated.md', 'date'],
      ['nul', 'nul.md', 'content'],
    ],
  )
})

describe('hostile archives are rejected', () => {
  for (const name of [
    '../evil.md',
    'a/../../evil.md',
    '/etc/evil.md',
    'C:/evil.md',
    '..\\evil.md',
    'C:\\evil.md',
  ])
    test(name, () =>
      assertRefused(buildRawZip([post('good.md'), post(name)]), 'a path in the archive leads out of it'),
    )
  test('a bomb by ratio', () =>
    assertRefused(
      buildRawZip([post('a.md'), { name: 'bomb.md', data: packRepeat('\0', 50_000_000) }]),
      'a file in the archive unpacks to more than 100 times',
    ))
  test('a bomb in a file that is no post', () =>
    assertRefused(
      buildRawZip([{ name: 'bomb.bin', data: packRepeat('\0', 50_000_000) }]),
      'a file in the archive unpacks to more than 100 times',
    ))
  test('a bomb by total', () => {
    const data = packRepeat('x', 5_000_000)
    return assertRefused(
      buildRawZip(Array.from({ length: 110 }, (_, i) => ({ name: `${i}.md`, data }))),
      'the files in the archive unpack to more than',
    )
  })
  test('a bomb of files that share their bytes', () => {
    const first = post('0.md', 'x'.repeat(3000))
    return assertRefused(
      buildRawZip([
        first,
        ...Array.from({ length: 100 }, (_, i) => ({ ...first, name: `${i}.md`, dataOffset: 0 })),
      ]),
      'the headers of the archive contradict',
    )
  })
  test('100,000 posts are read, and more are rejected', async () => {
    const entries = Array.from({ length: 100_001 }, (_, i) => ({
      name: `${i}.md`,
      data: Buffer.alloc(0),
      method: 0,
    }))
    assert.equal((await listItems('posts.zip', 'zip', buildRawZip(entries.slice(1)))).length, 100_000)
    await assertRefused(buildRawZip(entries), 'the archive has more than 100000 entries')
  })
  test('a false entry count', () => assertRefused(buildRawZip([post('a.md')], 9), 'the archive is damaged'))
  test('an encrypted archive', () =>
    assertRefused(buildRawZip([{ ...post('a.md'), flags: 1 }]), 'the archive is encrypted'))
  test('an unknown compression method', () =>
    assertRefused(
      buildRawZip([{ ...post('a.md'), method: 99 }]),
      'the archive uses an unsupported compression',
    ))
  test('a nested archive', async () => {
    await assertRefused(
      buildRawZip([post('a.md'), { name: 'inner.zip', data: buildRawZip([post('b.md')]) }]),
      'the archive contains another archive',
    )
    await assertRefused(
      buildRawZip([post('a.md'), { name: 'inner.md', data: buildRawZip([post('b.md')]) }]),
      'the archive contains another archive',
    )
  })
  test('a symbolic link', () =>
    assertRefused(
      buildRawZip([{ ...post('a.md'), attributes: (0o120777 << 16) >>> 0 }]),
      'the archive contains a link',
    ))
  test('false sizes, in the directory or everywhere', async () => {
    const wrong =
      /^The file cannot be imported: the (headers of the archive contradict each other|archive is damaged)$/
    for (const size of [{ unpacked: 1 }, { unpacked: 1000 }, { packed: 5 }, { packed: 999_999 }]) {
      await assertRefused(
        buildRawZip([{ ...post('a.md'), centralOverrides: size, localOverrides: size }]),
        wrong,
      )
      await assertRefused(buildRawZip([{ ...post('a.md'), centralOverrides: size }]), wrong)
    }
  })
  test('a different name in the local header', () =>
    assertRefused(
      buildRawZip([{ ...post('a.md'), localName: 'b.md' }]),
      'the headers of the archive contradict',
    ))
  test('a wrong checksum', () =>
    assertRefused(
      buildRawZip([{ ...post('a.md'), centralOverrides: { crc: 1 }, localOverrides: { crc: 1 } }]),
      'the archive is damaged',
    ))
  test('a truncated archive, or another file', async () => {
    const whole = buildRawZip([post('a.md'), post('b.md')])
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from('PK'),
      Buffer.from('not a zip'.repeat(100)),
      whole.subarray(0, whole.length - 5),
      whole.subarray(10),
    ])
      await assertRefused(
        bytes,
        /^The file cannot be imported: (it is not a zip archive|the archive is damaged|the headers)/,
      )
  })
  test('archives with changed bytes are rejected or harmless, and never cause an internal error', async () => {
    const whole = buildRawZip([post('a.md'), post('b.md')])
    for (let i = 0; i < whole.length; i++) {
      const changed = Buffer.from(whole)
      changed[i]! ^= 0xff
      const { error, result } = await send('posts.zip', changed)
      if (result !== null) await clear()
      if (error !== null) assert.equal(error.code, 'import.refused', `byte ${i}: ${error.stack}`)
    }
  })
})
