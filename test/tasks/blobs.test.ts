import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { type BlobLocation, findBlobLocation, sealBlob } from '../../sql/documents/blobs.ts'
import { Failure } from '../../sql/errors.ts'
import { type Blobs, createBlobs } from '../../tasks/documents/blobs/blobs.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createStoreKinds } from '../blobs.ts'
import { createTestDatabase } from '../database.ts'

/** All kinds of blob stores behave the same. */

const database = await createTestDatabase()
const { db, query } = database
const kinds = await createStoreKinds(database)
const MB = 1024 * 1024

async function* splitBytes(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function readAll(blobs: Blobs, at: BlobLocation, from: number, length: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of blobs.read(at, from, length)) pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces)
}

const isMissing = (error: unknown) => error instanceof Failure && error.code === 'document.bytes_missing'
const countRows = async () => (await query('select count(*)::int as n from blob'))[0]!.n

for (const kind of kinds) {
  describe(`a store of kind ${kind.name}`, { concurrency: false }, () => {
    const blobs = createBlobs(db, parseSettings(kind.env))
    /** Number of bytes that the store writes or reads at a time. */
    const unit = kind.name === 's3' ? 5 * MB : 256 * 1024
    const put = (bytes: Uint8Array, pieceSize = 70_001) => blobs.store(splitBytes(bytes, pieceSize))

    test('stores bytes of any size, in pieces of any size', async () => {
      const sizes = [
        ...[1, 1000, 256 * 1024, 256 * 1024 + 1],
        ...[unit - 1, unit, unit + 1, 2 * unit, 2 * unit + 2 * MB + 7],
      ]
      for (const size of new Set(sizes)) {
        const bytes = randomBytes(size)
        const stored = await put(bytes, size < 5000 ? 1 : 70_001)
        assert.equal(stored.byteSize, size)
        assert.deepEqual(stored.sha256, createHash('sha256').update(bytes).digest())
        assert.equal(Buffer.compare(stored.head, bytes.subarray(0, 64 * 1024)), 0)
        assert.equal(Buffer.compare(await readAll(blobs, stored.at, 0, size), bytes), 0, `${size} bytes`)
        assert.equal(Buffer.compare(await blobs.readWhole(stored.at.blob_id, size), bytes), 0)
        await blobs.discard(stored.at)
      }
    })

    test('reports an upload without bytes as empty', async () => {
      const stored = await put(new Uint8Array())
      assert.deepEqual([stored.byteSize, stored.head.length], [0, 0])
      await blobs.discard(stored.at)
    })

    test('reads any range', async () => {
      const bytes = randomBytes(unit + MB)
      const { at } = await put(bytes)
      const ranges = [
        [0, 1],
        [bytes.length - 1, 1],
        [262_143, 2],
        [262_144, 262_144],
        [unit - 1, 2],
        [100_000, unit],
        [0, bytes.length],
      ] as const
      for (const [from, length] of ranges) {
        const part = await readAll(blobs, at, from, length)
        assert.equal(Buffer.compare(part, bytes.subarray(from, from + length)), 0, `${from} + ${length}`)
      }
      await blobs.discard(at)
    })

    test('pauses with its reader, and stops when the reader leaves', async () => {
      const bytes = randomBytes(3 * MB)
      const { at } = await put(bytes)
      for (let round = 0; round < 30; round++) {
        for await (const piece of blobs.read(at, 0, bytes.length)) {
          assert.equal(Buffer.compare(piece, bytes.subarray(0, piece.length)), 0)
          break
        }
      }
      let read = 0
      for await (const piece of blobs.read(at, 0, bytes.length)) {
        await new Promise((resolve) => setImmediate(resolve))
        assert.equal(Buffer.compare(piece, bytes.subarray(read, read + piece.length)), 0)
        read += piece.length
      }
      assert.equal(read, bytes.length)
      await blobs.discard(at)
    })

    test('knows whether all bytes exist', async () => {
      const { at } = await put(randomBytes(300_000))
      assert.equal(await blobs.exists(at, 300_000), true)
      assert.equal(await blobs.exists(at, 299_999), false)
      assert.equal(await blobs.exists(at, 300_001), false)
      await assert.rejects(blobs.readWhole(at.blob_id, 300_001), isMissing)
      await assert.rejects(blobs.readWhole(at.blob_id, 299_999), isMissing)
      await assert.rejects(blobs.readWhole(999_999_999, 1), isMissing)
      await blobs.discard(at)
      assert.equal(await blobs.exists(at, 300_000), false)
    })

    test('reports missing bytes with the first piece', async () => {
      const { at } = await put(randomBytes(300_000))
      await assert.rejects(readAll(blobs, at, 290_000, 20_000), isMissing)
      await kind.deleteAll()
      await assert.rejects(readAll(blobs, at, 0, 10), isMissing)
      await assert.rejects(blobs.readWhole(at.blob_id, 300_000), isMissing)
      await blobs.discard(at)
    })

    test('leaves nothing of an upload that breaks off, at any point', async () => {
      for (const size of [1, 100_000, unit, unit + 1, 2 * unit + MB]) {
        const broken = async function* () {
          yield* splitBytes(randomBytes(size), 65_536)
          throw new Failure('request.incomplete', 'gone')
        }
        await assert.rejects(blobs.store(broken()), { code: 'request.incomplete' })
        assert.deepEqual([await kind.count(), await countRows()], [0, 0], `${size} bytes`)
      }
    })

    test('removes discarded uploads, however often', async () => {
      const { at } = await put(randomBytes(unit + MB))
      assert.equal(await kind.count(), 1)
      await blobs.discard(at)
      assert.deepEqual([await kind.count(), await countRows()], [0, 0])
      await blobs.discard(at)
      await blobs.remove(at)
    })

    test('does not remove an upload that has become a document', async () => {
      const { at, sha256, byteSize } = await put(randomBytes(1000))
      assert.deepEqual(await db.maybeOne(sealBlob(at.blob_id, sha256, byteSize)), { sealed: true })
      await blobs.discard(at)
      assert.equal(await blobs.exists(at, byteSize), true)
      await query('update blob set sha256 = null')
      await blobs.discard(at)
      assert.equal(await kind.count(), 0)
    })

    test('stores the same bytes twice concurrently without conflict', async () => {
      const bytes = randomBytes(400_000)
      const [one, two] = await Promise.all([put(bytes), put(bytes, 10_000)])
      assert.deepEqual(one.sha256, two.sha256)
      await blobs.discard(one.at)
      assert.equal(Buffer.compare(await readAll(blobs, two.at, 0, bytes.length), bytes), 0)
      await blobs.discard(two.at)
      assert.equal(await kind.count(), 0)
    })

    test('is found by its row after the setting has changed', async () => {
      const { at } = await put(Buffer.from('from before'))
      const other = kind.name === 'postgres' ? { BLOB_STORE: 'file:elsewhere' } : { BLOB_STORE: 'postgres' }
      const later = createBlobs(db, parseSettings({ ...kind.env, ...other }))
      assert.equal((await readAll(later, at, 0, 11)).toString(), 'from before')
      await later.discard(at)
      assert.equal(await kind.count(), 0)
      await later.close()
    })

    test('closes', () => blobs.close())
  })
}

test('bytes in a store that is no longer configured are missing, but are not deleted', async () => {
  const s3 = kinds.find(({ name }) => name === 's3')!
  const before = createBlobs(db, parseSettings(s3.env))
  const { at } = await before.store(splitBytes(Buffer.from('elsewhere'), 4))
  const blobs = createBlobs(db, parseSettings({}))
  assert.equal(await blobs.exists(at, 9), false)
  await assert.rejects(readAll(blobs, at, 0, 9), isMissing)
  await assert.rejects(blobs.discard(at), isMissing)
  assert.equal((await db.maybeOne(findBlobLocation(at.blob_id)))?.blob_id, at.blob_id)
  await before.discard(at)
  assert.equal(await s3.count(), 0)
  await before.close()
})
