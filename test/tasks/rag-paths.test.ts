import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, openSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Failure } from '../../sql/errors.ts'
import { KNOWN_EXTENSIONS } from '../../tasks/rag/formats.ts'
import { decodeText, readFoundFile } from '../../tasks/rag/read.ts'
import { resolveTarget } from '../../tasks/rag/target.ts'
import { listFiles, type WalkOptions, type WalkResult } from '../../tasks/rag/walk.ts'
import { createFolder, writeFiles } from '../edge/rag-help.ts'

/** Some paths may be indexed; others are rejected, or skipped with a reason. */

const outside = createFolder()
const root = createFolder()
writeFiles(outside, { 'secret.txt': 'secret', 'more/secret.txt': 'secret' })
writeFiles(root, {
  'a/one.md': 'one',
  'a/two.txt': 'two',
  'a/b/three.py': 'three = 3',
  'a/b/picture.png': 'not read by its extension',
  '.env': 'KEY=1',
  '.git/config.txt': 'hidden',
  'a/node_modules/x/index.js': 'x',
  'a/server.pem': 'pem',
  'a/my-credentials.json': '{}',
  'a/id_rsa.txt': 'key',
  'data/secret.key.txt': 'kept',
  'data/db.txt': 'kept',
})

const createOptions = (more: Partial<WalkOptions> = {}): WalkOptions => ({
  extensions: KNOWN_EXTENSIONS,
  excludes: [],
  skippedFolders: [join(root, 'data')],
  signal: new AbortController().signal,
  ...more,
})
const walkPath = async (path: string, more: Partial<WalkOptions> = {}): Promise<WalkResult> =>
  listFiles(await resolveTarget(root, path), createOptions(more))
const listSources = async (path: string, more: Partial<WalkOptions> = {}): Promise<string[]> =>
  (await walkPath(path, more)).files.map(({ source }) => source)
const assertRefused = (code: string, path: string, more: Partial<WalkOptions> = {}): Promise<void> =>
  assert.rejects(walkPath(path, more), (error) => error instanceof Failure && error.code === code, path)

describe('paths', () => {
  test('are the files below the root, in order, without ignored ones', async () => {
    const all = ['a/b/three.py', 'a/one.md', 'a/two.txt']
    assert.deepEqual(await listSources('.'), all)
    assert.deepEqual(await listSources('a/'), all)
    assert.deepEqual(await listSources(join(root, 'a', '..', 'a')), all)
    assert.deepEqual(await listSources('a/one.md'), ['a/one.md'])
    assert.deepEqual(await listSources('.', { extensions: new Set(['md']) }), ['a/one.md'])
  })

  test('are excluded by patterns, which cannot include ignored ones', async () => {
    assert.deepEqual(await listSources('.', { excludes: ['b/', '*.txt'] }), ['a/one.md'])
    assert.deepEqual(await listSources('a', { excludes: ['/one.md', '# a comment', ''] }), [
      'a/b/three.py',
      'a/two.txt',
    ])
    assert.deepEqual(await listSources('.', { excludes: ['*', '!a/', '!a/one.md'] }), ['a/one.md'])
    assert.deepEqual(
      await listSources('.', { excludes: ['!.env', '!.git', '!node_modules', '!*.pem', '!data'] }),
      ['a/b/three.py', 'a/one.md', 'a/two.txt'],
    )
  })

  test('are rejected if they are outside, missing or ignored', async () => {
    await assertRefused('rag.path_outside', '..')
    await assertRefused('rag.path_outside', '../..//etc/passwd')
    await assertRefused('rag.path_outside', `${root}-other`)
    await assertRefused('rag.path_outside', outside)
    await assertRefused('rag.path_outside', join(outside, 'nothing'), {})
    await assertRefused('rag.path_outside', '/dev/zero')
    await assertRefused('rag.path_missing', 'nothing')
    await assertRefused('rag.path_missing', 'a/one.md/below')
    await assertRefused('rag.path_missing', 'a\0b')
    for (const path of [
      '.git',
      '.env',
      '.git/config.txt',
      'a/node_modules/x',
      'a/server.pem',
      'data',
      'data/db.txt',
    ])
      await assertRefused('rag.path_excluded', path)
    await assert.rejects(resolveTarget(join(root, 'nothing'), '.'), { code: 'rag.root_missing' })
  })

  test('are rejected through symbolic links', async () => {
    symlinkSync(outside, join(root, 'out'))
    symlinkSync(join(outside, 'secret.txt'), join(root, 'out.txt'))
    symlinkSync(root, join(root, 'a', 'loop'))
    symlinkSync('nowhere', join(root, 'broken.md'))
    symlinkSync('one.md', join(root, 'a', 'same.md'))
    await assertRefused('rag.path_outside', 'out')
    await assertRefused('rag.path_outside', 'out/more')
    await assertRefused('rag.path_outside', 'out.txt')
    await assertRefused('rag.path_missing', 'out/more/../../x')
    await assertRefused('rag.path_missing', 'broken.md')
    assert.deepEqual(
      await listSources('a/loop/a/b'),
      ['a/b/three.py'],
      'a link that stays inside is its target',
    )
    const { files, skipped } = await walkPath('.')
    assert.deepEqual(
      files.map(({ source }) => source),
      ['a/b/three.py', 'a/one.md', 'a/two.txt'],
    )
    assert.deepEqual(skipped, [
      { source: 'a/same.md', reason: 'a symbolic link' },
      { source: 'broken.md', reason: 'a symbolic link' },
      { source: 'out.txt', reason: 'a symbolic link' },
    ])
  })

  test('may have a root that is a link', async () => {
    const other = createFolder()
    symlinkSync(root, join(other, 'link'))
    const place = await resolveTarget(join(other, 'link'), join(other, 'link', 'a'))
    assert.equal(place.path, join(root, 'a'))
  })

  test('skip devices, pipes and sockets', async () => {
    const odd = join(root, 'odd')
    mkdirSync(odd)
    execFileSync('mkfifo', [join(odd, 'pipe.txt')])
    const server = net.createServer().listen(join(odd, 'socket.txt'))
    await new Promise((resolve) => server.once('listening', resolve))
    await assertRefused('rag.path_kind', 'odd/pipe.txt')
    await assertRefused('rag.path_kind', 'odd/socket.txt')
    assert.deepEqual((await walkPath('odd')).skipped, [
      { source: 'odd/pipe.txt', reason: 'a pipe' },
      { source: 'odd/socket.txt', reason: 'a socket' },
    ])
    server.close()
  })
})

describe('reading', () => {
  const read = (path: string) => readFoundFile({ source: path, path: join(root, path) }, 'text')

  test('does not wait for a pipe, follow a link or open a device that replaced a file', async () => {
    execFileSync('mkfifo', [join(root, 'late.txt')])
    assert.deepEqual(await read('late.txt'), { reason: 'not a file' })
    assert.deepEqual(await read('out.txt'), { reason: 'a symbolic link' })
    assert.deepEqual(
      await read('out/secret.txt'),
      { reason: 'replaced during the run' },
      'a folder became a link',
    )
    assert.deepEqual(await readFoundFile({ source: 'zero', path: '/dev/zero' }, 'text'), {
      reason: 'not a file',
    })
    assert.deepEqual(await read('nothing.txt'), { reason: 'deleted during the run' })
  })

  test('skips a file that is too large', async () => {
    const path = join(root, 'sparse.txt')
    openSync(path, 'w')
    truncateSync(path, 10 * 2 ** 30)
    assert.deepEqual(await read('sparse.txt'), { reason: 'larger than 8 MiB' })
  })

  test('reports unreadable files', async () => {
    writeFiles(root, { 'locked/in.txt': 'x', 'closed.txt': 'x' })
    chmodSync(join(root, 'closed.txt'), 0)
    chmodSync(join(root, 'locked'), 0)
    chmodSync(root, 0o755)
    const asNobody = async (): Promise<void> => {
      assert.deepEqual(await read('closed.txt'), { reason: 'permission denied' })
      const { skipped } = await walkPath('.')
      assert.deepEqual(
        skipped.filter(({ reason }) => reason === 'permission denied'),
        [{ source: 'locked', reason: 'permission denied' }],
      )
      await assertRefused('rag.path_denied', 'locked/in.txt')
      await assertRefused('rag.path_denied', 'locked')
    }
    // Permissions do not restrict root.
    const isRoot = process.getuid!() === 0
    if (isRoot) process.seteuid!(65_534)
    try {
      await asNobody()
    } finally {
      if (isRoot) process.seteuid!(0)
      chmodSync(join(root, 'locked'), 0o755)
    }
  })

  test('distinguishes text from other files', () => {
    assert.equal(decodeText(Buffer.from('grün\n')), 'grün\n')
    assert.equal(decodeText(Buffer.from('\ufeffmarked')), 'marked')
    assert.equal(decodeText(Buffer.from('\ufeffwide ü', 'utf16le')), 'wide ü')
    assert.equal(decodeText(Buffer.from([0x67, 0xfc, 0x80])), 'gü€')
    assert.equal(decodeText(Buffer.from('\x1b[31mred\x1b[0m\r\n\tx\f')), '\x1b[31mred\x1b[0m\r\n\tx\f')
    assert.equal(decodeText(Buffer.from('')), '')
    assert.equal(decodeText(Buffer.from('a padded log\0\0\n')), 'a padded log\n')
    assert.equal(decodeText(Buffer.from('Мельница и мука', 'utf16le')), 'Мельница и мука')
    for (const bytes of [
      Buffer.alloc(10),
      Buffer.from('a\0b'),
      Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
      Buffer.from([0x81, 0x8d]),
      Buffer.concat([Buffer.alloc(900, 'ab'), Buffer.alloc(900, 1)]),
    ])
      assert.equal(decodeText(bytes), null, bytes.toString('hex').slice(0, 20))
    writeFileSync(join(root, 'ok.txt'), 'ok')
  })
})
